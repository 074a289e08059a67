puts 'hello from ruby'

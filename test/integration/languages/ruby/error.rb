raise 'boom'

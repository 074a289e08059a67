puts ENV.fetch('GREETING')

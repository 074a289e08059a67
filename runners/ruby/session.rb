# SPDX-License-Identifier: Apache-2.0
# Runs the executions of one Ruby session (runners/README.md describes the lines of the channel).
#
# Descriptor 0 is the channel. It moves to a high descriptor first, so that programs find an empty standard input. An execution is evaluated in
# TOPLEVEL_BINDING, which keeps local variables; this file has none at its top level. A `return` outside of methods is a LocalJumpError that carries
# its value; code that rescues StandardError around such a `return` catches it.
#
# SIGINT: the handler raises Interrupt in the main thread while an execution runs. Thread.handle_interrupt keeps Interrupt out of this file: it is
# taken only in the program's code and in the wait for an answer of the host. One that comes too late is dropped at the end of the execution.
#
# One thread reads the channel at a time. Others wait until it has read their answer, or read next.

# The host answered a call with an exception of which there is no class here.
class HostError < RuntimeError
  attr_accessor :type
end

module AtollSession
  CHANNEL = 200              # descriptor of the channel, where the limit on descriptors permits it
  F_DUPFD_CLOEXEC = 1030
  LINE_MOST = 32 << 20       # bytes of one output, and of a file that is read
  VALUE_MOST = 8 << 20       # bytes of a value inside a result; a larger one comes in pieces
  VALUE_PIECE = 3 << 18      # bytes of such a piece
  VALUE_WITH_REPR = 64 << 10 # bytes of a value that is sent with its text
  REPR_MOST = 1 << 20        # characters of a text that stands for a value
  ARGUMENTS_MOST = 1 << 20   # bytes of the arguments of a host call
  TEXT_MOST = 64 << 10
  OUTPUTS_MOST = 100
  ENTRIES_MOST = 10_000
  DEPTH_MOST = 60            # levels and parts of JSON that the front reads
  PARTS_MOST = 250_000
  MIMES = { to_html: 'text/html', to_svg: 'image/svg+xml', to_png: 'image/png' }.freeze
  WORK = Dir.pwd.freeze

  # ---------------------------------------------------------------------------------------- values

  # Values as JSON with tags.
  module Values
    module_function

    def parts
      @parts
    end

    def tag(value, most = PARTS_MOST)
      @parts, @most = 0, most
      tag_part(value, 0)
    end

    def tag_part(value, depth)
      @parts += 1
      raise TypeError, "value has more than #{DEPTH_MOST} levels or #{PARTS_MOST} parts" if depth > DEPTH_MOST || @parts > @most

      case value
      when nil, true, false then value
      when Integer then value.bit_length < 64 ? value : { '$int' => value.to_s }
      when Float then tag_float(value)
      when String then tag_string(value)
      when Symbol then tag_string(value.to_s)
      when Array then value.map { |item| tag_part(item, depth + 1) }
      when Hash then tag_hash(value, depth)
      when Complex then { '$complex' => [tag_float(value.real.to_f), tag_float(value.imaginary.to_f)] }
      when Time then { '$datetime' => value.strftime('%Y-%m-%dT%H:%M:%S.%6N%:z') }
      else tag_other(value, depth)
      end
    end

    # Classes of libraries that may not be loaded.
    def tag_other(value, depth)
      case value.class.ancestors.find { |base| %w[Set DateTime Date BigDecimal].include?(base.name) }&.name
      when 'Set' then { '$set' => value.map { |item| tag_part(item, depth + 2) } }
      when 'DateTime' then { '$datetime' => value.iso8601(6) }
      when 'Date' then { '$date' => value.iso8601 }
      when 'BigDecimal' then { '$decimal' => value.to_s('F') }
      else raise TypeError, "#{value.class} cannot cross the boundary of the sandbox"
      end
    end

    def tag_float(value)
      return value if value.finite?

      { '$float' => value.nan? ? 'nan' : value.positive? ? 'inf' : '-inf' }
    end

    def tag_string(value)
      text = value.encoding == Encoding::BINARY && !value.ascii_only? ? nil : value.encode(Encoding::UTF_8)
      text&.valid_encoding? ? String.new(text) : { '$bytes' => [value].pack('m0') }
    rescue EncodingError
      { '$bytes' => [value].pack('m0') }
    end

    def tag_hash(value, depth)
      names = value.keys.map { |key| key.is_a?(Symbol) ? key.to_s : key }
      plain = names.all? { |key| key.is_a?(String) && tag_string(key).is_a?(String) && !key.include?("\0") } && names.uniq.size == names.size
      if plain && !(names.size == 1 && names[0].start_with?('$'))
        return names.zip(value.values).to_h { |key, item| [key, tag_part(item, depth + 1)] }
      end

      { '$dict' => value.map { |key, item| [tag_part(key, depth + 3), tag_part(item, depth + 3)] } }
    end

    def untag(value)
      case value
      when Array then value.map { |item| untag(item) }
      when Hash
        return untag_one(*value.first) if value.size == 1 && value.first[0].start_with?('$')

        value.transform_values { |item| untag(item) }
      else value
      end
    end

    def library(name)
      require name
      yield
    end

    def untag_one(name, content)
      case name
      when '$bytes' then content.unpack1('m')
      when '$tuple' then untag(content)
      when '$set', '$frozenset' then library('set') { Set.new(untag(content)) }
      when '$complex' then Complex(*untag(content))
      when '$datetime' then library('time') { Time.iso8601(content.match?(/(Z|[+-]\d\d:\d\d)\z/) ? content : "#{content}Z") }
      when '$date' then library('date') { Date.iso8601(content) }
      when '$time' then content
      when '$timedelta' then content
      when '$decimal' then library('bigdecimal') { BigDecimal(content) }
      when '$float' then { 'nan' => Float::NAN, 'inf' => Float::INFINITY, '-inf' => -Float::INFINITY }.fetch(content)
      when '$int' then Integer(content)
      when '$dict' then content.to_h { |key, item| [untag(key), untag(item)] }
      else raise ArgumentError, "unknown tag #{name}"
      end
    end
  end

  module_function

  def shortened(text, most)
    text = text.dup.force_encoding(Encoding::UTF_8) unless text.encoding == Encoding::UTF_8
    text = text.scrub
    text.size <= most ? text : "#{text[0, most]}… (#{text.size} characters)"
  end

  # --------------------------------------------------------------------------------------- channel

  # Lines in both directions, for any thread.
  class Channel
    def initialize
      number = begin
        $stdin.fcntl(F_DUPFD_CLOEXEC, CHANNEL)
      rescue Errno::EINVAL
        $stdin.fcntl(F_DUPFD_CLOEXEC, 3)
      end
      @io = IO.for_fd(number, 'r+b')
      $stdin.reopen('/dev/null')
      @lock, @changed = Mutex.new, ConditionVariable.new
      @is_read, @pieces = false, []
      @answers = {} # number of an open call -> answer, or nil
      @queue = []   # messages for the session
    end

    # In a child that the program forked.
    def close
      @io.close
    end

    def closed?
      @io.closed?
    end

    def send(message)
      write("#{JSON.generate(message)}\n")
    end

    def write(line)
      @lock.synchronize { @io.closed? || @io.write(line) && @io.flush }
    end

    def open_call(number)
      @lock.synchronize { @answers[number] = nil }
    end

    # All calls that are open get no answer.
    def abandon
      @lock.synchronize do
        @answers.clear
        @changed.broadcast
      end
    end

    # The answer of a call; nil: it was abandoned.
    def answer(number)
      wait { !@answers.key?(number) || @answers[number] }
      @lock.synchronize { @answers.delete(number) }
    end

    # The next message for the session; nil at the end of the channel.
    def next_message
      wait { !@queue.empty? }
      @lock.synchronize { @queue.shift }
    end

    private

    # Interrupt is taken in the waits, where nothing is half done.
    def wait(&block)
      @lock.synchronize do
        until block.call
          if @is_read
            Thread.handle_interrupt(Interrupt => :on_blocking) { @changed.wait(@lock) }
          else
            lead
          end
        end
      end
    end

    def lead
      @is_read = true
      @lock.unlock
      begin
        Thread.handle_interrupt(Interrupt => :immediate) { IO.select([@io]) }
        messages = read
      ensure
        @lock.lock
        @is_read = false
        @changed.broadcast
      end
      messages.each { |message| message && message['op'] == 'return' ? take_answer(message) : @queue << message }
    end

    def take_answer(message)
      @answers[message['call']] = message if @answers.key?(message['call'])
    end

    def read
      *lines, rest = @io.readpartial(1 << 16).split("\n", -1)
      lines[0] = (@pieces + [lines[0]]).join unless lines.empty?
      @pieces.clear unless lines.empty?
      @pieces << rest
      lines.map { |line| JSON.parse(line.force_encoding(Encoding::UTF_8)) }
    rescue EOFError
      [nil]
    end
  end

  # -------------------------------------------------------------------------------- host functions

  module_function

  def bind_host(names)
    (@functions - names).each { |name| Object.send(:remove_method, name) if Object.private_method_defined?(name, false) }
    @functions = names
    names.each do |name|
      Object.send(:define_method, name) { |*args, **kwargs| AtollSession.call_host(name, args, kwargs) }
      Object.send(:private, name)
    end
  end

  def call_host(name, args, kwargs)
    Thread.handle_interrupt(Interrupt => :never) do
      raise "#{name}() is a function of the host: a forked process cannot call it" if @channel.closed?
      raise "#{name}() is a function of the host: no execution is running" unless @number

      number = @calls += 1
      line = JSON.generate('op' => 'call', 'call' => number, 'name' => name, 'args' => args.map { |arg| Values.tag(arg) },
                           'kwargs' => kwargs.to_h { |key, value| [key, Values.tag(value)] })
      raise ArgumentError, "arguments of #{name}() take #{line.bytesize} bytes; at most #{ARGUMENTS_MOST} are allowed" if line.bytesize > ARGUMENTS_MOST

      @channel.open_call(number)
      @channel.write("#{line}\n")
      result_of(name, @channel.answer(number))
    end
  end

  def result_of(name, answer)
    raise "#{name}() was not answered before its execution ended" unless answer

    error = answer['error'] or return Values.untag(answer['result'])
    kind = error['type'].to_s
    known = kind.match?(/\A[A-Z]\w*\z/) && Object.const_defined?(kind) && Object.const_get(kind)
    raise known, error['message'] if known.is_a?(Class) && known <= StandardError

    raise HostError.new(error['message']).tap { |raised| raised.type = kind }
  end

  # ---------------------------------------------------------------------------------- rich outputs

  def display(*values)
    Thread.handle_interrupt(Interrupt => :never) do
      values.each { |value| publish(value, rich(value)) }
      nil
    end
  end

  def rich(value)
    MIMES.filter_map do |name, mime|
      next unless value.respond_to?(name)

      data = value.public_send(name)
      [mime, mime == 'image/png' ? [data].pack('m0') : shortened(data.to_s, LINE_MOST)] if data
    end.to_h
  end

  def publish(value, data)
    return unless @number

    @outputs += 1
    warn("More than #{OUTPUTS_MOST} outputs in one execution: the rest is left out.") if @outputs == OUTPUTS_MOST + 1
    return if @outputs > OUTPUTS_MOST

    line = JSON.generate('op' => 'output', 'n' => @number, 'data' => { 'text/plain' => shortened(value.inspect, TEXT_MOST), **data }, 'metadata' => {})
    if line.bytesize > LINE_MOST
      text = "output of #{line.bytesize} bytes is too large; at most #{LINE_MOST} are allowed"
      line = JSON.generate('op' => 'output', 'n' => @number, 'data' => { 'text/plain' => text }, 'metadata' => {})
    end
    flush
    @channel.write("#{line}\n")
  end

  # ------------------------------------------------------------------------------------ executions

  def flush
    [$stdout, STDOUT].each { |stream| stream.flush rescue nil } # closed, or no stream
  end

  # Takes the frames of this file out of an exception and its causes.
  def hide_runner(error)
    seen = []
    while error && !seen.include?(error)
      seen << error
      error.set_backtrace(error.backtrace.reject { |line| line.start_with?("#{__FILE__}:") }) if error.backtrace
      error = error.cause
    end
  end

  def describe_error(error)
    hide_runner(error)
    text = error.backtrace&.any? ? error.full_message(highlight: false, order: :top) : error.message
    text = "#{shortened(text, REPR_MOST).chomp}\n"
    $stderr.write(text)
    lines = error.is_a?(SyntaxError) ? [error.message, *error.backtrace] : error.backtrace || []
    place = lines.find { |line| line.start_with?("#{WORK}/") } || lines[0]
    file, line = place&.match(/\A(.*?):(\d+)/)&.captures
    { 'type' => error.is_a?(Interrupt) ? 'KeyboardInterrupt' : error.class.name || 'Exception', 'message' => shortened(error.message, TEXT_MOST),
      'file' => file, 'line' => line&.to_i, 'traceback' => shortened(text, 4 * TEXT_MOST) }
  end

  def describe_value(value, most)
    return {} if value.nil?

    data = rich(value)
    publish(value, data) unless data.empty?
    found, line = { 'value_type' => value.class.name || 'Object' }, nil
    begin
      tagged = Values.tag(value, Float::INFINITY)
      line = JSON.generate(tagged)
    rescue TypeError, JSON::GeneratorError
      # The text has to do.
    end
    fits = line && line.bytesize <= VALUE_MOST && Values.parts <= PARTS_MOST
    found['value'] = tagged if fits
    return found if fits && line.bytesize > VALUE_WITH_REPR

    text = value.inspect
    found['value_repr'] = shortened(text, REPR_MOST)
    found['value_bytes'] = send_whole(line || JSON.generate(text.scrub), most) if !fits && (line || text.size > REPR_MOST)
    found
  end

  # A value that is too large for the result: its JSON text in pieces, if so much is kept; its size.
  def send_whole(line, most)
    line = line.b
    (0...(line.bytesize <= most ? line.bytesize : 0)).step(VALUE_PIECE) do |at|
      @channel.send('op' => 'value', 'n' => @number, 'base64' => [line.byteslice(at, VALUE_PIECE)].pack('m0'))
    end
    line.bytesize
  end

  def evaluate(message)
    bind_host((message['host_functions'] || []).map { |item| item.is_a?(Hash) ? item['name'] : item })
    (message['globals'] || {}).each { |name, value| TOPLEVEL_BINDING.local_variable_set(name, Values.untag(value)) }
    path = message['file'] || "#{WORK}/cell-#{@number}.rb"
    $0 = path # `if __FILE__ == $0` is true, as in a program of one file
    Thread.handle_interrupt(Interrupt => :immediate) do
      TOPLEVEL_BINDING.eval(message['code'], path, 1)
    end
  rescue LocalJumpError => e
    raise unless e.reason == :return && @number

    e.exit_value
  end

  def execute(message)
    @number, @outputs = message['n'], 0
    done = { 'op' => 'done', 'n' => @number, 'error' => nil, 'exit_code' => 0, 'interrupted' => false }
    give_input(message['stdin']) if message['stdin']
    @armed = true
    begin
      done.merge!(describe_value(evaluate(message), message['value_most'] || 0))
    rescue SystemExit => e
      done['exit_code'] = e.status
    rescue Exception => e
      done.merge!('exit_code' => 1, 'interrupted' => e.is_a?(Interrupt) && @was_interrupted, 'error' => describe_error(e))
    end
    @armed = @was_interrupted = false
    drop_interrupts
    flush
    exit!(done['exit_code']) if @channel.closed? # a child that the program forked
    STDIN.reopen('/dev/null') if message['stdin']
    @number = nil
    @channel.abandon
    trap('INT') { on_interrupt }
    @exit_code = done['exit_code']
    @channel.send(done)
  end

  # The standard input of one execution.
  def give_input(text)
    path = "/tmp/.atoll-stdin-#{Process.pid}"
    File.binwrite(path, text)
    STDIN.reopen(path, 'r')
    File.unlink(path)
    $stdin = STDIN
  end

  def on_interrupt
    return unless @armed

    @was_interrupted = true
    Thread.main.raise(Interrupt, '')
  end

  def drop_interrupts
    Thread.handle_interrupt(Interrupt => :immediate) { Thread.pass } while Thread.pending_interrupt?
  rescue Interrupt
    retry
  end

  # ----------------------------------------------------------------------------------------- files

  def answer_file(message)
    answer = { 'op' => 'file', 'n' => message['n'], 'error' => nil }
    path = File.join(WORK, message['path'])
    answer.merge(case message['op']
                 when 'list' then { 'entries' => entries_of(path) }
                 when 'read' then read_file(path, message['offset'], message['size'])
                 when 'write' then write_file(path, message['base64'].unpack1('m'), message['offset'])
                 when 'remove' then remove_file(path)
                 end)
  rescue SystemCallError => e
    answer.merge('error' => e.class.name.split('::').last, 'message' => SystemCallError.new(nil, e.errno).message)
  end

  def entries_of(path)
    return [entry_of(path)].compact unless File.lstat(path).directory?

    found, todo = [], [path]
    while (place = todo.shift)
      Dir.children(place).sort.each do |name|
        entry = entry_of("#{place}/#{name}") or next
        return found.sort_by { |item| item['path'] } if found.size == ENTRIES_MOST

        found << entry
        todo << "#{place}/#{name}" if entry['type'] == 'directory'
      end
    end
    found.sort_by { |item| item['path'] }
  end

  def entry_of(path)
    found = File.lstat(path)
    kind = { 'file' => 'file', 'directory' => 'directory', 'link' => 'link' }[found.ftype]
    kind && { 'path' => File.expand_path(path).delete_prefix("#{WORK}/"), 'size' => found.size, 'type' => kind, 'mtime' => found.mtime.to_f }
  end

  def read_file(path, offset, size)
    found = File.stat(path)
    raise Errno::EISDIR if found.directory?
    raise Errno::EINVAL unless found.file?

    { 'base64' => [File.binread(path, size, offset) || ''].pack('m0'), 'size' => found.size }
  end

  def write_file(path, data, offset)
    require 'fileutils'
    FileUtils.mkdir_p(File.dirname(path))
    offset.zero? ? File.binwrite(path, data) : File.open(path, 'r+b') { |file| file.seek(offset) && file.write(data) }
    {}
  rescue Errno::EEXIST
    raise Errno::ENOTDIR
  end

  def remove_file(path)
    require 'fileutils'
    File.lstat(path).directory? ? FileUtils.rm_r(path) : File.unlink(path)
    {}
  end

  # ----------------------------------------------------------------------------------------- start

  def main
    File.unlink(__FILE__) rescue nil # it is no file, or gone
    @armed = @was_interrupted = false
    @functions, @calls, @exit_code = [], 0, 0
    trap('INT') { on_interrupt }
    @channel = Channel.new
    @channel.write("{\"op\":\"ready\"}\n")
    require 'json'
    channel = @channel
    Process.singleton_class.prepend(Module.new do
      define_method(:_fork) { super().tap { |pid| channel.close if pid.zero? } }
    end)
    $stdout.sync = true
    $0 = 'session'
    TOPLEVEL_BINDING.receiver.define_singleton_method(:display) { |*values| AtollSession.display(*values) }
    Thread.handle_interrupt(Interrupt => :never) { serve }
    exit(@exit_code)
  end

  def serve
    while (message = @channel.next_message)
      message['op'] == 'run' ? execute(message) : @channel.send(answer_file(message))
    end
  end
end

AtollSession.main

# SPDX-License-Identifier: Apache-2.0
# A Ruby to fork programs from: RUBYOPT="-rzygote.rb -ratoll" ruby /sandbox/main.rb MODULE…
#
# Ruby opens its script, then loads what -r names, then reads the script. This file forks in between: the first -r loads it, the
# second calls `require` of the main object, which forks. A child only puts the request's script behind the open file and its
# words into ARGV. Ruby itself then reads and runs the script as ever, so backtraces, DATA, $0, exit
# codes and at_exit are its own. What is open at first is some other file: see ATOLL_ENTRY in languages/ruby.yaml.
#
# Known to differ from a cold run: the seed of hashes and addresses are shared by the children of one zygote; counters of
# garbage collection go on from the zygote's.
def self.require(_)
  singleton_class.send(:remove_method, :require)
  $LOADED_FEATURES.pop
  modules = ARGV.map { |name| name.tr(".", "/") }
  ARGV.clear
  modules.each { |name| Kernel.require(name) }
  script = ObjectSpace.each_object(File).find { |file| !file.closed? && file.path == $0 }
  exit!(1) unless script
  # Left out because /sandbox, the home, is not there yet.
  Gem.paths.path.unshift(Gem.user_dir) unless Gem.path.include?(Gem.user_dir)
  3.times { GC.start }
  exit!(1) if Process.fork

  socket = IO.for_fd(100, "rb", autoclose: false)
  if socket.sysread(1) == "w"
    RubyVM::InstructionSequence.compile("[1, 2].map { |x| format('%d', x) }.join(', ')", $0).eval
  end
  count, *words = socket.read.split("\0")
  words = words.first(count.to_i)
  script.reopen(words[1])
  first = script.readline("\n", 256) unless script.eof?
  # Of another name, or with options in its first line: Ruby has already read those and must start again.
  exec([words[0], words[0]], *words.drop(1)) if words[1] != $0 || first&.match?(/\A#!(?!.*ruby[\d.]*\n?\z)/n)
  script.rewind
  ARGV.replace(words.drop(2).map { |word| word.force_encoding(Encoding.default_external).freeze })
end

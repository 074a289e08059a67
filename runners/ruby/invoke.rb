# SPDX-License-Identifier: Apache-2.0
# Calls one method of a class that a tool file defines, for `atoll run --invoke`.
#
#     invoke.rb TOOL CLASS METHOD     parameters in .atoll-params.json, answer in .atoll-invoke.json
#
# Parameters are passed as keywords. Answer and exit status as in runners/python/invoke.py.
require 'json'

WORK = '/sandbox'.freeze

def instantiate(tool_class)
  tool_class.new(config: {})
rescue ArgumentError
  tool_class.new
end

def call(path, class_name, method_name)
  params = JSON.parse(File.read("#{WORK}/.atoll-params.json"), symbolize_names: true)
  load path
  instantiate(Object.const_get(class_name)).public_send(method_name, **params)
end

def failure(error)
  { result: nil, error: error.message, type: error.class.name, traceback: error.full_message(highlight: false) }
end

# Only what JSON itself can hold; to_json would turn any object into its to_s.
def plain?(value)
  case value
  when nil, true, false, Integer, String then true
  when Float then value.finite?
  when Array then value.all? { |item| plain?(item) }
  when Hash then value.all? { |key, item| (key.is_a?(String) || key.is_a?(Symbol)) && plain?(item) }
  else false
  end
end

path, class_name, method_name = ARGV.shift(3)
begin
  result = call(path, class_name, method_name)
  answer = { result: result, error: nil, type: nil, traceback: nil }
  unless plain?(result)
    answer = failure(TypeError.new("#{result.class} has no JSON form"))
    answer[:result] = "Result of type #{result.class} is not JSON serializable."
    answer[:error] = "Non-serializable result. Serialization error: #{result.class} has no JSON form"
  end
rescue StandardError, ScriptError => e
  answer = failure(e)
end
File.write("#{WORK}/.atoll-invoke.json", JSON.generate(answer))
exit(answer[:error].nil? ? 0 : 1)

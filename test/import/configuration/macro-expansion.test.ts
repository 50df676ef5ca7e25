import { expect, test } from 'vitest'
import { expandMacros } from '../../../src/import/configuration/macro-expansion.ts'

const VALUES: Readonly<Record<string, string>> = {
  name: 'host.example',
  domain: 'example',
  list: '$name, localhost.$domain',
  empty: '',
  level: '3.6',
  loop: '$loop2',
  loop2: 'x${loop}',
}

test.each([
  ['plain', 'plain'],
  ['$name', 'host.example'],
  ['$name-$domain', 'host.example-example'],
  ['${name}.$(domain)', 'host.example.example'],
  ['$list', 'host.example, localhost.example'],
  ['a$$b', 'a$b'],
  ['$ x', '$ x'],
  ['$unknown.', '.'],
  ['${name?yes}${empty?no}', 'yes'],
  ['${empty:instead}${name:unused}', 'insteadhost.example'],
  ['${empty?{10}:{300}}s', '300s'],
  ['${name?{$domain}:{no}}', 'example'],
  ['${{$level} <level {2} ? {old} : {new}}', 'new'],
  ['${{$level} <level {3.7} ? {old} : {new}}', 'old'],
  ['${{a} == {a} ? {same} : {}}', 'same'],
  ['${{10} < {9} ? {text} : {number}}', 'number'],
  ['${{a} != {a}}', ''],
])('%s is %s', (text, expanded) => {
  expect(expandMacros(text, (name) => VALUES[name])).toBe(expanded)
})

test.each(['$loop', '${name', '${name!x}', '${{a} ? {b}}'])('%s is refused', (text) => {
  expect(() => expandMacros(text, (name) => VALUES[name])).toThrow()
})

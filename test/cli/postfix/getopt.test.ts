import { describe, expect, test } from 'vitest'
import { getopt } from '../../../src/cli/postfix/getopt.ts'

const parse = (line: string, spec = 'ab:c') => {
  const { options, operands } = getopt('postqueue', line === '' ? [] : line.split(' '), spec)
  return [options.map(({ name, value }) => (value === '' ? name : `${name}=${value}`)), operands]
}

describe('options', () => {
  test.each<[string, string, readonly string[], readonly string[]]>([
    ['none', '', [], []],
    ['single ones', '-a -c', ['a', 'c'], []],
    ['clusters', '-ac', ['a', 'c'], []],
    ['a separate value', '-b x', ['b=x'], []],
    ['an attached value', '-bx', ['b=x'], []],
    ['a value at the end of a cluster', '-acbx', ['a', 'c', 'b=x'], []],
    ['a value that begins with a hyphen', '-b -a', ['b=-a'], []],
    ['repeated ones, in order', '-b 1 -a -b 2', ['b=1', 'a', 'b=2'], []],
    ['operands anywhere', 'x -a y', ['a'], ['x', 'y']],
    ['a hyphen alone is an operand', '-a -', ['a'], ['-']],
    ['-- ends the options', '-a -- -c -b', ['a'], ['-c', '-b']],
    ['--config with every tool', '--config f --config=g', ['config=f', 'config=g'], []],
  ])('%s: %j', (_, line, options, operands) => {
    expect(parse(line)).toEqual([options, operands])
  })

  test.each([
    ['-x', "postqueue: invalid option -- 'x'"],
    ['-ax', "postqueue: invalid option -- 'x'"],
    ['-:', "postqueue: invalid option -- ':'"],
    ['--nonsense', "postqueue: invalid option -- '-'"],
    ['-b', "postqueue: option requires an argument -- 'b'"],
    ['--config', "postqueue: option requires an argument -- 'config'"],
  ])('%j is a usage error', (line, message) => {
    expect(() => parse(line)).toThrow(expect.objectContaining({ message, exitCode: 64 }))
  })
})

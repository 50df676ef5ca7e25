import { describe, expect, test } from 'vitest'
import { lookUpAtOnce } from '../../src/patterns/matching.ts'
import { PatternTable } from '../../src/patterns/pattern-table.ts'
import type { PatternType } from '../../src/patterns/pattern.ts'

function tableOf(type: PatternType, ...lines: readonly string[]): (key: string) => string | undefined {
  const table = new PatternTable(
    type,
    lines.map((text, i) => ({ where: `/table, line ${i + 1}`, text })),
    { substitutes: true },
  )
  return (key) => lookUpAtOnce(table.lookUp(key))
}

describe('a table of patterns', () => {
  test('gives the result of the first rule that matches', () => {
    const find = tableOf('regexp', '/^a/ one', '/^ab/ two', '%c/d% three')
    expect(['ax', 'abx', 'c/d', 'z'].map(find)).toEqual(['one', 'one', 'three', undefined])
  })

  test('has negated rules, and in regexp: a second pattern', () => {
    const find = tableOf('regexp', '/^a/!/z$/ begins with a', '!!/^b/ b', '!/x/ without x')
    expect(['ab', 'az', 'bx', 'x'].map(find)).toEqual(['begins with a', 'without x', 'b', undefined])
  })

  test('has conditions that nest', () => {
    const find = tableOf('pcre', 'if /^a/', '/b/ ab', 'IF !/c/', '/d/ ad', 'endif', '/c$/ ac', 'endif', '/./ other')
    expect(['ab', 'ad', 'acd', 'ac', 'bd'].map(find)).toEqual(['ab', 'ad', 'other', 'ac', 'other'])
  })

  test('replaces groups in results; one that matched nothing is empty', () => {
    const find = tableOf('pcre', '/^(\\w+)-(x)?/ ${1}s, $(2), $$1 $2.')
    expect([find('ab-x'), find('ab-')]).toEqual(['abs, x, $1 x.', 'abs, , $1 .'])
  })

  test.each<[PatternType, RegExp, ...string[]]>([
    ['regexp', /^\/table, line 1: the pattern has no closing \/; add it$/, '/abc x'],
    ['regexp', /^\/table, line 2: endif has no if; remove it$/, '/a/ x', 'endif'],
    ['regexp', /^\/table, line 2: if has no endif; add a line endif$/, '/a/ x', 'if /b/', '/c/ x'],
    ['regexp', /^\/table, line 1: if is followed by "x"; remove it$/, 'if /b/ x', 'endif'],
    ['regexp', /^\/table, line 1: "abc x" is no rule; write \/PATTERN\/ RESULT$/, 'abc x'],
    ['regexp', /\$2 has no group in the pattern/, '/(a)/ $2'],
    ['regexp', /\$1 has no group after !/, '!/(a)/ $1'],
    ['regexp', /"\$x" names no group; write \$\{1\}, or \$\$ for a dollar sign$/, '/(a)/ $x'],
    ['pcre', /^\/table, line 1: "\$" names no group/, '/a/ 5 $ each'],
    ['pcre', /^\/table, line 1: the flag ! is not known/, '/a/!/b/ x'],
    ['pcre', /the rule has no pattern/, '!'],
  ])('%s: is refused with %s', (type, message, ...lines) => {
    expect(() => tableOf(type, ...lines)).toThrow(message)
  })
})

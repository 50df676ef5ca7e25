/** Translation of POSIX and Perl-compatible patterns, and what is refused. test/interop compares matches with those of Postfix. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { UnsupportedSyntax } from '../../src/patterns/octet-class.ts'
import { Pattern, type PatternType } from '../../src/patterns/pattern.ts'

const groups = (type: PatternType, source: string, key: string, flags = '') =>
  Pattern.parse(type, source, flags).match(Buffer.from(key).toString('latin1'), true)

describe('a regexp: pattern', () => {
  test.each([
    ['^Subject: (.*)$', 'subject: x\n y', ['subject: x\n y', 'x\n y']],
    ['(a|ab)(c|bcd)(d*)', 'abcd', ['abcd', 'a', 'bcd', '']],
    ['x+?', 'xx', ['xx']],
    ['[]a]+', ']a', [']a']],
    [String.raw`[\.]`, String.raw`\ `, ['\\']],
    ['a)', 'a)', ['a)']],
    ['[[.-.]x]', '-', ['-']],
    ['a{,2}b', 'aaab', ['aab']],
    ['\u00c3', 'é', ['\u00c3']],
  ])('%s matches %j', (source, key, expected) => {
    expect(groups('regexp', source, key)).toEqual(expected)
  })

  test('folds ASCII letters only, and no letter with the flag i', () => {
    expect(groups('regexp', 'É', 'é')).toBeNull()
    expect(groups('regexp', 'SUBJECT', 'subject')).not.toBeNull()
    expect(groups('regexp', 'SUBJECT', 'subject', 'i')).toBeNull()
    expect(groups('regexp', 'SUBJECT', 'subject', 'ii')).not.toBeNull()
  })

  test('matches by line with the flag m', () => {
    expect(groups('regexp', '^two$', 'one\ntwo\nthree', 'm')).toEqual(['two'])
    expect(groups('regexp', 'one.two', 'one\ntwo', 'm')).toBeNull()
    expect(groups('regexp', 'one[^x]two', 'one\ntwo', 'm')).toBeNull()
    expect(groups('regexp', 'one[^x]two', 'one\ntwo')).toEqual(['one\ntwo'])
  })

  test.each([
    ['(a)\\1', /^\\1 refers back to a group/],
    ['\\d+', /^\\d is the letter d in regexp: tables/],
    ['\\<a', /write \\b for the edge of a word$/],
    ['*a', /^nothing precedes a repetition operator/],
    ['^*', /^nothing precedes a repetition operator/],
    ['(a', /add \)$/],
    ['[a', /^a \[ is not closed/],
    ['[[:letter:]]', /^\[:letter:\] is no class/],
    ['[z-a]', /exchange its ends$/],
    ['a{1001}', /^a count exceeds 1000/],
    ['a{x', /^\{ begins no count/],
    ['a\\', /^a \\ ends the pattern/],
  ])('%s is refused with what to do', (source, text) => {
    expect(() => Pattern.parse('regexp', source, '')).toThrow(text)
  })

  test('has no flag x for basic regular expressions, and no unknown flags', () => {
    expect(() => Pattern.parse('regexp', 'a', 'x')).toThrow('the flag x selects basic regular expressions')
    expect(() => Pattern.parse('regexp', 'a', 'q')).toThrow('the flag q is not known; known are i, m')
  })
})

describe('a pcre: pattern', () => {
  test.each([
    ['^subject:\\s+(?<name>\\w+?)(\\d*)\\z', 'Subject: ab12', '', ['Subject: ab12', 'ab', '12']],
    ['a.b', 'a\nb', '', ['a\nb']],
    ['a.b', 'a\nb', 's', null],
    ['a b # comment', 'ab', 'x', ['ab']],
    ['b', 'ab', 'A', null],
    ['a+', 'aaa', 'U', ['a']],
    ['\\Qa.b\\E+', 'a.bb', '', ['a.bb']],
    ['(?#remark)x(?i:Y)(?-i)z', 'XyZ', '', null],
    ['[\\d\\-x]+', '1-x', '', ['1-x']],
    ['\\o{101}\\012', 'a\n', '', ['a\n']],
    ['\\x41\\x{42}', 'ab', '', ['ab']],
    ['{x}{2', '{x}{2', '', ['{x}{2']],
    ['^b$', 'a\nb\nc', 'm', ['b']],
    ['\\h\\v', '\t\n', '', ['\t\n']],
  ])('%s with key %j and flags "%s" gives %j', (source, key, flags, expected) => {
    expect(groups('pcre', source, key, flags)).toEqual(expected)
  })

  test.each([
    ['^(?!Subject)', /^\(\?!Subject looks ahead or behind.* put the rule between "if/],
    ['(?<=a)b', /looks ahead or behind/],
    ['a++', /^\+\+ is possessive/],
    ['(?>a)', /is an atomic group/],
    ['(a)\\1', /refers back to a group/],
    ['(a)(?1)', /calls or repeats another group/],
    ['(?(1)a|b)', /is a condition/],
    ['(*ACCEPT)', /begins a verb/],
    ['\\p{Lu}', /is for Unicode/],
    ['\\Ka', /^\\K is not known/],
    ['(a', /missing closing \)/],
    ['a{2000}', /invalid repeat count/],
  ])('%s is refused with what to do', (source, text) => {
    expect(() => Pattern.parse('pcre', source, '')).toThrow(text)
  })
})

const SOURCE = fc
  .array(fc.constantFrom(...'ab.^$|()[]{}*+?\\-!:=<>dwsxQE1,2 é'.split(''), '[^', '(?', '[[:', ':]]', '{1,'), { maxLength: 12 })
  .map((parts) => parts.join(''))

test.each(['regexp', 'pcre'] as const)('any %s: pattern matches any text, or is refused with a sentence', (type) => {
  fc.assert(
    fc.property(SOURCE, fc.string(), (source, key) => {
      try {
        groups(type, Buffer.from(source).toString('latin1'), key)
      } catch (error) {
        expect(error).toBeInstanceOf(UnsupportedSyntax)
        expect((error as Error).message).toMatch(/; \w|; "|remove|write|add/)
      }
    }),
    { numRuns: 3000 },
  )
})

const ATOM = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '(a|b)', '(ab)', '(?:a)', '\\w', '\\d', '^', '$', '\\.')
const PERL = fc
  .array(fc.tuple(ATOM, fc.constantFrom('', '', '*', '+', '?', '*?', '{1,2}')), { minLength: 1, maxLength: 6 })
  .map((parts) => parts.map(([atom, times]) => (atom === '^' || atom === '$' ? atom : atom + times)).join(''))

test('pcre: patterns have the matches and groups of Perl-compatible engines', () => {
  fc.assert(
    fc.property(PERL, fc.stringMatching(/^[ab.1\n]{0,10}$/), (source, key) => {
      const expected = new RegExp(source, 'is').exec(key)
      expect(groups('pcre', source, key)).toEqual(expected === null ? null : [...expected].map((one) => one ?? ''))
    }),
    { numRuns: 2000 },
  )
})

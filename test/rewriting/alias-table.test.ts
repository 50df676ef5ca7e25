import { describe, expect, test } from 'vitest'
import { parseTables } from '../../src/config/values/lookup-tables.ts'
import { openAliasTable } from '../../src/rewriting/alias-table.ts'

const FILES: Readonly<Record<string, string>> = {
  '/aliases': '# aliases\nroot: admin@a.test,\n  "x y"@a.test\npostmaster : root\nteam  :include:/team\nline\n',
  '/team': '# members\nann@a.test, bob\n\n"c d"@a.test\n',
  '/empty': '# nobody\n',
}

const readFile = (path: string): string => {
  const text = FILES[path]
  if (text === undefined) throw new Error('ENOENT')
  return text
}

const open = (given: unknown, limit = 1_000) => openAliasTable(parseTables(given), readFile, limit)

describe('alias_maps', () => {
  test('have names with or without a colon, continued lines, and lists in files', () => {
    const { table, warnings } = open('texthash:/aliases')
    expect(['root', 'postmaster', 'team', 'ann', 'root@a.test', '@a.test'].map((key) => table.find(key))).toEqual([
      'admin@a.test, "x y"@a.test',
      'root',
      'ann@a.test, bob, "c d"@a.test',
      undefined,
      undefined,
      undefined,
    ])
    expect(warnings).toEqual(['alias_maps: /aliases, line 6: expected a key, a blank and a value; the line is ignored'])
  })

  test('are TOML tables, inline: and static: too; static: is for local parts only', () => {
    expect(open({ Root: '":include:/team", eve' }).table.find('root')).toBe('ann@a.test, bob, "c d"@a.test, eve')
    expect(open('inline:{ {root = a@b.test c@d.test} }').table.find('root')).toBe('a@b.test, c@d.test')
    const { find } = open('static:all@a.test').table
    expect([find('anything'), find('x@y.test')]).toEqual(['all@a.test', undefined])
  })

  test.each([
    [
      '"|/usr/bin/vacation ann"',
      /^alias_maps: the alias root has a command \(\|\/usr\/bin\/vacation ann\), to which deferd does not deliver/,
    ],
    ['|/usr/bin/procmail', /has a command/],
    ['{|/bin/sh -c id}', /has a command \(\{\|\/bin\/sh -c id\}\)/],
    ['ann@a.test, {"|/bin/sh"}', /has a command/],
    ['<|/bin/sh>', /has a command/],
    ['<"|/bin/sh -c id">', /has a command/],
    ['ann@a.test |/bin/sh', /has a command/],
    ['{/etc/passwd}', /has a file/],
    ['Ann </var/mail/ann>', /has a file/],
    ['{:include:/team}', /has a list/],
    ['/var/mail/root', /has a file \(\/var\/mail\/root\)/],
    ['a@b.test, /dev/null', /has a file/],
    [':include:/absent', /^alias_maps: cannot read \/absent: ENOENT$/],
    [':include:/empty', /^alias_maps: the alias root has no address/],
    [':other:/x', /has a list/],
    ['', /has no address/],
    ['<a b@c.test>', /which is not an address; correct it$/],
  ])('with %j are refused', (value, reason) => expect(() => open({ root: value })).toThrow(reason))

  test('with more addresses than virtual_alias_expansion_limit are refused at the first one too many', () => {
    expect(open({ root: ':include:/team' }, 3).table.find('root')).toBe('ann@a.test, bob, "c d"@a.test')
    expect(() => open({ root: 'a@b.test, :include:/team' }, 2)).toThrow(
      'alias_maps: the alias root has more than 2 addresses, with those of /team: virtual_alias_expansion_limit refuses all its mail; shorten the list, or raise the limit',
    )
    expect(() => open({ root: 'a@b.test c@d.test' }, 1)).toThrow('the alias root has more than 1 addresses: virtual')
  })

  test('as one text are refused with a command in braces too', () =>
    expect(() => open('inline:{root={|/bin/sh -c id}}')).toThrow(/^alias_maps: the alias root has a command/))
})

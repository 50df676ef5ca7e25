import { describe, expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { parseTables } from '../../../src/config/values/lookup-tables.ts'

const entries = (given: unknown) => parseTables(given).map((one) => (one.kind === 'inline' ? Object.fromEntries(one.entries) : one))

describe('lookup tables', () => {
  test.each([
    ['', []],
    ['inline:{a@b.test=c@d.test, E=f}', [{ 'a@b.test': 'c@d.test', e: 'f' }]],
    ['inline:{ {a = b c}, {d=e=f} g=h }', [{ a: 'b c', d: 'e=f', g: 'h' }]],
    ['texthash:/etc/deferd/canonical', [{ kind: 'texthash', path: '/etc/deferd/canonical' }]],
    ['static:x@y.test', [{ kind: 'static', value: 'x@y.test' }]],
    ['static:{two words}', [{ kind: 'static', value: 'two words' }]],
    ['inline:{a=b}, texthash:/x static:y', [{ a: 'b' }, { kind: 'texthash', path: '/x' }, { kind: 'static', value: 'y' }]],
    [
      ['inline:{a=b}', 'static:y'],
      [{ a: 'b' }, { kind: 'static', value: 'y' }],
    ],
    [{ 'Ann@a.test': 'x@y.test', 'ann@a.test': 'later' }, [{ 'ann@a.test': 'x@y.test' }]],
  ])('%j', (given, read) => expect(entries(given)).toEqual(read))

  test.each([
    ['hash:/etc/postfix/canonical', /deferd does not read hash: tables; name the text file itself, without postmap: texthash:\/PATH$/],
    ['proxy:mysql:/x', /does not read mysql: tables/],
    ['/etc/postfix/canonical', /^"\/etc\/postfix\/canonical" is not a lookup table; write a TOML table, inline:/],
    ['texthash:', /has no path/],
    ['inline:{}', /is malformed; write inline:/],
    ['inline:{a}', /is malformed/],
    ['inline:{{a=b}{c=d}}', /^"\{a=b\}\{c=d\}" has text after its closing brace; separate members by commas or blanks$/],
    ['inline:{{a=b}c}', /has text after its closing brace/],
    ['static:', /^"static:" has no value; write static:VALUE$/],
    ['static:{ }', /has no value/],
    ['static:{a}{b}', /has text after its closing brace/],
    ['regexp:{{/a/ b}{/c/ d}}', /has text after its closing brace/],
    ['inline:{a=b', /has a brace without its counterpart/],
    [{ a: 1 }, /^expected a text for "a", got 1$/],
    [7, /^expected lookup tables, got 7/],
  ])('%j is refused', (given, problem) => expect(() => parseTables(given)).toThrow(problem))

  test('are parameters of the file and of -o, and are printed as one text', () => {
    const table = configFrom({ canonical_maps: { 'ann@a.test': 'x@y.test' } })
    expect(table.written.get('canonical_maps')).toBe('inline:{{ann@a.test = x@y.test}}')
    const option = configFrom({}, 'relay.example', { overrides: [`canonical_maps=${table.written.get('canonical_maps')}`] })
    expect(option.config.canonical_maps).toEqual(table.config.canonical_maps)
    expect(() => configFrom({ canonical_maps: 'hash:/x' })).toThrow('canonical_maps: deferd does not read hash: tables')
  })
})

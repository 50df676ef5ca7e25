import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { stringify } from 'smol-toml'
import { ConfigError } from '../../../src/config/values/problem.ts'
import { HOUR, MINUTE, SECOND } from '../../../src/system/clock.ts'
import { KEYS, type KeyName } from '../../../src/testkit/remote/rule-keys.ts'
import { readRule } from '../../../src/testkit/remote/rule-reader.ts'
import { NO_SCRIPT, STAGES } from '../../../src/testkit/remote/rule.ts'
import { readScript } from '../../../src/testkit/remote/script.ts'

/** Mistakes for which a script is refused, one per line. */
function complaints(script: string): string[] {
  try {
    readScript(script, 'f.toml')
  } catch (error) {
    if (error instanceof ConfigError) return error.message.split('\n')
    throw error
  }
  return []
}

describe('a script', () => {
  test('is rules in the order of the file, and names', () => {
    const script = readScript(
      `[rule.greylisting]
      domain = "slow.example"
      greylist = "5m"

      [rule.down]
      connect = "refused"
      from = "1h"
      until = "3h"

      [dns."Picky.example"]
      mx = ["10 mx1.picky.example.", "20 mx2.picky.example"]
      a = ["192.0.2.1"]`,
      'f.toml',
    )
    expect(script.rules.map(({ name }) => name)).toEqual(['greylisting', 'down'])
    expect(script.rules[0]).toMatchObject({
      where: { domain: 'slow.example' },
      when: { greylist: { delay: 5 * MINUTE, window: 4 * HOUR } },
      fault: { at: 'rcpt', action: { text: { kind: 'reply', lines: ['451 4.7.1 Greylisted, please try again later'] } } },
    })
    expect(script.rules[1]).toMatchObject({ when: { from: HOUR, until: 3 * HOUR }, fault: { at: 'connect', connect: 'refused' } })
    expect(script.zones.get('picky.example')).toEqual({
      mx: [
        { preference: 10, exchange: 'mx1.picky.example' },
        { preference: 20, exchange: 'mx2.picky.example' },
      ],
      a: ['192.0.2.1'],
      aaaa: [],
    })
  })

  test('may be empty', () => {
    expect(readScript('', 'f.toml')).toEqual(NO_SCRIPT)
  })

  test('may have a null MX', () => {
    expect(readScript('dns.x.mx = ["0 ."]', 'f.toml').zones.get('x')?.mx).toEqual([{ preference: 0, exchange: '' }])
  })
})

describe('a script with mistakes is refused with file, line and what would be right', () => {
  test.each([
    ['[rule.x]\nat = "rcpt"\nrepply = "450 no"', 'f.toml:3: rule x: unknown key repply; did you mean reply?'],
    ['[rule.x]\nat = "rcp"\nreply = "450 no"', 'f.toml:2: rule x: at: expected one of dns, connect, greeting'],
    ['[rule.x]\nat = "rcpt"\nreply = "no such user"', 'f.toml:3: rule x: reply: expected a reply such as "450 4.2.1 busy"'],
    ['[rule.x]\nat = "rcpt"\nreply = "450 no\\n550 never"', 'f.toml:3: rule x: reply: expected a reply such as'],
    ['[rule.x]\nreply = "450 no"', 'f.toml:1: rule x: has no stage: add at = one of dns, connect'],
    ['[rule.x]\nat = "rcpt"', 'f.toml:1: rule x: has no effect: add one of dns, connect, reply'],
    [
      '[rule.x]\n\nat = "mail"\nrecipient = "bob@*"\nreply = "450 no"',
      'f.toml:4: rule x: recipient is not valid at mail, only at rcpt, data',
    ],
    [
      '[rule.x]\nat = "rcpt"\nreply = "450 no"\nheader = "Subject: *x*"',
      'f.toml:4: rule x: header is not valid at rcpt, only at end-of-data',
    ],
    ['[rule.x]\nat = "rcpt"\nreply = "450 no"\nstall = true', 'f.toml:4: rule x: stall cannot be combined with reply'],
    ['[rule.x]\nat = "rcpt"\nreply = "450 no"\nfirst = 2\nevery = 3', 'f.toml:5: rule x: every cannot be combined with first'],
    ['[rule.x]\nat = "rcpt"\nreply = "450 no"\ngreylist_window = "4h"', 'f.toml:4: rule x: greylist_window needs greylist'],
    ['[rule.x]\nconnect = "refused"\nfrom = "2h"\nuntil = "1h"', 'f.toml:4: rule x: until must be later than from'],
    ['[rule.x]\nconnect = "refused"\nfrom = "soon"', 'f.toml:3: rule x: from: expected a time such as "300s", "5m" or "2d", got "soon"'],
    ['[rule.x]\nconnect = "refused"\nprobability = 2', 'f.toml:3: rule x: probability: expected a probability from 0 to 1'],
    ['[rule.x]\nrate = "10"', 'f.toml:2: rule x: rate: expected a rate such as "10/1m", got "10"'],
    ['[rule.x]\nconnect = "refused"\nflapping = "2m"', 'f.toml:3: rule x: flapping: expected the lengths of the bad and the good phase'],
    ['[rule.x]\nat = "idle"\nafter = "10k"\ndrop = "fin"', 'f.toml:3: rule x: after: expected a time such as'],
    ['[rule.x]\nat = "body"\nafter = "2s"\ndrop = "fin"', 'f.toml:3: rule x: after: expected a size in bytes'],
    ['[rule.x]\nat = "rcpt"\nraw = "€"', 'f.toml:3: rule x: raw: expected bytes'],
    ['[rule.1]\nat = "rcpt"\ndrop = "fin"', 'f.toml:1: rule 1: a name needs a letter'],
    ['\n[rules.x]\nat = "rcpt"', 'f.toml:2: unknown key rules; did you mean rule?'],
    ['[[rule]]\nat = "rcpt"', 'f.toml:1: rule must be a table: [rule.NAME]'],
    ['[rule]\nat = "rcpt"', 'f.toml:2: at is not a rule: rules are tables with a name of their own, such as [rule.at-1]'],
    ['[dns."x"]\nmxx = []', 'f.toml:2: unknown key mxx; did you mean mx?'],
    ['[dns."x"]\nmx = ["mx1.x"]', 'f.toml:2: mx: expected a preference and a host such as "10 mx1.x", got "mx1.x"'],
    ['[dns."x"]\na = "192.0.2.1"', 'f.toml:2: a: expected a list of texts, got "192.0.2.1"'],
    ['[rule.x]\nat = rcpt', 'f.toml:2: '],
    ['rule.x = { at = "rcpt", drop = "fin", stall = true }', 'f.toml:1: rule x: stall cannot be combined with drop'],
  ])('%j', (script, complaint) => {
    const [first, ...more] = complaints(script)
    expect(first?.slice(0, complaint.length)).toBe(complaint)
    expect(more).toEqual([])
  })

  test('all mistakes at once', () => {
    const [a, first, where, zone, ...more] = complaints('[rule.a]\nat = "rcpt"\n\n[rule.b]\nfrist = 2\nwhere = "x"\n\n[zone]\n')
    expect(a).toMatch(/^f\.toml:1: rule a: has no effect/)
    expect(first).toBe('f.toml:5: rule b: unknown key frist; did you mean first?')
    expect(where).toMatch(/^f\.toml:6: rule b: unknown key where/)
    expect(zone).toMatch(/^f\.toml:8: unknown key zone/)
    expect(more).toEqual([])
  })
})

describe('any rule text', () => {
  const value = fc.oneof(
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.constantFrom('5m', '450 4.2.1 busy', 'rcpt', 'fin', '10/1m', '2m/3m', '30%', 'refused', 'servfail', 'Subject: *x*'),
    fc.array(fc.string(), { maxLength: 2 }),
  )
  const key = fc.oneof(fc.constantFrom(...(Object.keys(KEYS) as KeyName[])), fc.string({ minLength: 1, maxLength: 8 }))
  const written = fc.dictionary(key, value, { maxKeys: 6 })

  test('is a rule or a list of mistakes, never an exception', () => {
    fc.assert(
      fc.property(written, (keys) => {
        const read = readRule('x', keys)
        if ('rule' in read) expect(STAGES).toContain(read.rule.fault.at)
        else for (const { key: at, text } of read.mistakes) expect([at === null || at in keys, text.length > 10]).toEqual([true, true])
      }),
      { numRuns: 2_000 },
    )
  })

  test('means the same in TOML and in code, and each mistake has a line of the file', () => {
    fc.assert(
      fc.property(written, (keys) => {
        const read = readRule('x', keys)
        const toml = `# a script\n${stringify({ rule: { x: keys } })}`
        const said = complaints(toml)
        if ('rule' in read) expect(readScript(toml, 'f.toml').rules).toEqual([read.rule])
        else expect(said.length).toBeGreaterThan(0)
        const lines = toml.split('\n').length
        for (const line of said.flatMap((text) => /^f\.toml:(\d+): /.exec(text)?.slice(1) ?? [])) {
          expect(Number(line)).toBeGreaterThan(0)
          expect(Number(line)).toBeLessThanOrEqual(lines)
        }
      }),
      { numRuns: 500 },
    )
  })
})

test('421 closes the connection unless the rule keeps it, and a partial reply always does', () => {
  const ending = (written: Record<string, unknown>) => {
    const read = readRule('x', { at: 'rcpt', ...written })
    return 'rule' in read && 'action' in read.rule.fault ? read.rule.fault.action.ending : read
  }
  expect(ending({ reply: '421 4.3.2 no' })).toBe('fin')
  expect(ending({ reply: '421 4.3.2 no', drop: 'rst' })).toBe('rst')
  expect(ending({ reply: '450 4.3.2 no' })).toBe('continue')
  expect(ending({ cut: 3 })).toBe('fin')
  expect(ending({ stall: true })).toBe('stall')
  expect(ending({ delay: SECOND })).toBeDefined()
})

test('a table with facts about a recording has no effect', () => {
  const { rules, zones } = readScript('[record]\nsessions = 12\nduration = "14m"\n', 'session.toml')
  expect([rules.length, zones.size]).toEqual([0, 0])
  expect(() => readScript('record = 12', 'session.toml')).toThrow('record must be a table')
})

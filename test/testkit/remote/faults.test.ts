/**
 * Every line of the table of faults is correct: its example is read as a script, and a client that delivers as described above the
 * table gets the results of the line.
 */
import { readFileSync } from 'node:fs'
import { isDeepStrictEqual } from 'node:util'
import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../../src/system/clock.ts'
import { KEYS, usesOf, type KeyName } from '../../../src/testkit/remote/rule-keys.ts'
import { readRule } from '../../../src/testkit/remote/rule-reader.ts'
import { STAGES } from '../../../src/testkit/remote/rule.ts'
import { readScript } from '../../../src/testkit/remote/script.ts'
import { openRemote } from '../../support/remote-harness.ts'
import { inWords } from '../../support/probe-commands.ts'

interface Row {
  readonly name: string
  readonly script: string
  readonly meets: string
}

const PAGE = readFileSync(new URL('../../../docs/faults.md', import.meta.url), 'utf8')

/** Reads an example from its code: a whole statement, or the table of a rule without its name. */
function scriptOf(cell: string, name: string): string {
  const pieces = [...cell.matchAll(/`([^`]+)`/g)].map(([, code = ''], index) =>
    code.startsWith('{') ? `rule.${name}-${index} = ${code}` : code,
  )
  return pieces.join('\n')
}

function rowsUnder(heading: string): Row[] {
  const section = PAGE.split(/^## /m).find((text) => text.startsWith(heading)) ?? ''
  return section.split('\n').flatMap((line) => {
    const [, name = '', , example = '', meets = ''] = line.split(/(?<!\\)\|/).map((cell) => cell.trim())
    return /^[a-z0-9-]+$/.test(name) && example.includes('`') ? [{ name, script: scriptOf(example, name), meets }] : []
  })
}

const asShown = (words: string): string => words.replaceAll('|', String.raw`\|`)

async function aloneMeets(script: string): Promise<string> {
  const world = openRemote(script)
  const rounds = await world.deliver([{ to: ['bob@them.example'] }], [0, 5 * MINUTE, 10 * MINUTE])
  return asShown(inWords(rounds, world.mails.length))
}

async function crowdMeets(script: string): Promise<string> {
  const world = openRemote(script)
  const mail = { to: ['bob@them.example', 'ann@them.example', 'eve@them.example'] }
  const rounds = await world.deliver([mail, mail, mail], [0, 5 * MINUTE])
  return asShown(inWords(rounds, world.mails.length))
}

const alone = rowsUnder('One client')
const crowd = rowsUnder('Three clients')

test('the page describes every key', () => {
  for (const [name, { about }] of Object.entries(KEYS)) expect(PAGE).toContain(`| \`${name}\` | ${about} |`)
})

test('the table has at least 45 faults, each with a name of its own, at every stage', () => {
  const rows = [...alone, ...crowd]
  expect(rows.length).toBeGreaterThanOrEqual(45)
  expect(new Set(rows.map(({ name }) => name)).size).toBe(rows.length)
  const stages = new Set(rows.flatMap(({ script }) => readScript(script, 'faults.md').rules.map((rule) => rule.fault.at)))
  expect([...STAGES].filter((stage) => !stages.has(stage))).toEqual([])
})

describe('a rule differs from the rule without the key', () => {
  const examples = [
    ...[...alone, ...crowd].flatMap(({ script }) => readScript(script, 'faults.md').rules.map((rule) => rule.written)),
    // Keys without a line in the tables, and a delay beside another effect.
    { at: 'mail', reply: '450 busy', delay: '1s' },
    { helo: 'them.example', at: 'mail', reply: '450 busy' },
    { size_under: 100, at: 'mail', reply: '450 busy' },
  ]
  const without = (text: object, names: readonly string[]) =>
    Object.fromEntries(Object.entries(text).filter(([name]) => !names.includes(name)))
  /** The rule of a text without its name and its text; undefined for one with mistakes. */
  const effectOf = (text: object) => {
    const read = readRule('rule', { ...text })
    return 'rule' in read ? { ...read.rule, name: '', written: {} } : undefined
  }
  /** The text with its stage, and with an effect of its own. */
  const completed = (text: object, key: string) => {
    const at = effectOf(text)?.fault.at
    return key === 'at' ? text : { ...text, at, ...(key === 'delay' ? {} : { delay: '1s' }) }
  }

  test.each(Object.keys(KEYS) as KeyName[])('%s', (key) => {
    const dependent = (Object.keys(KEYS) as KeyName[]).filter((name) => usesOf(name).needs?.includes(key))
    const differing = examples.filter((text) => {
      if (!(key in text)) return false
      const full = without(completed(text, key), dependent)
      const [whole, rest] = [effectOf(full), effectOf(without(full, [key]))]
      const isComparable = whole !== undefined && (rest !== undefined || key === 'at')
      return isComparable && !isDeepStrictEqual(whole, rest)
    })
    expect(differing).not.toEqual([])
  })
})

describe('one client at 0, 5 and 10 minutes gets what the table lists', () => {
  test.each(alone)('$name', async ({ script, meets }) => {
    expect(await aloneMeets(script)).toBe(meets)
  })
})

describe('three clients at once get what the table lists', () => {
  test.each(crowd)('$name', async ({ script, meets }) => {
    expect(await crowdMeets(script)).toBe(meets)
  })
})

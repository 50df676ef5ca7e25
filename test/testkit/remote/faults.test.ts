/**
 * Every line of the table of faults is correct: its example is read as a script, and a client that delivers as described above the
 * table gets the results of the line.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { MINUTE } from '../../../src/system/clock.ts'
import { KEYS } from '../../../src/testkit/remote/rule-keys.ts'
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

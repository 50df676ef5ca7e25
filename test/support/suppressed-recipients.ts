/** The cost of RCPT beside a list of suppressed addresses: statements of the store, and memory. */
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createWorld } from '../../src/testkit/create-world.ts'
import type { World } from '../../src/testkit/world.ts'
import { operatorEntry } from './operator-entry.ts'
import { dialogue } from './world-dialogue.ts'

const SCOPE = 'us.example'
const RECIPIENTS = 100
/** Number of entries of a commit. */
const GROUP = 10_000

interface Cost {
  /** Statements of a session with 100 recipients that are not listed. */
  readonly others: number
  /** The same, with a listed one too. */
  readonly withListed: number
  /** Memory of the keys, in bytes. */
  readonly memory: number
}

/** `statements` returns the number of statements so far. Of the entries, each is of an address of its own. */
export async function costOfRcpt(entries: number, statements: () => number): Promise<Cost> {
  const store = { directory: mkdtempSync(join(tmpdir(), 'deferd-suppressed-')) }
  await using world = await createWorld({ config: { suppression: 'yes' }, store })
  for (let from = 0; from < entries; from += GROUP)
    await world.store.records.suppressions.putAll(
      Array.from({ length: Math.min(GROUP, entries - from) }, (_, n) =>
        operatorEntry({ scope: SCOPE, address: `user${from + n}@far.example` }),
      ),
    )
  const before = process.memoryUsage().arrayBuffers
  // The relay has read all changes.
  await world.advance('1h')
  const memory = process.memoryUsage().arrayBuffers - before
  const costOf = async (more: readonly string[]): Promise<number> => {
    const from = statements()
    const replies = await session(world, more)
    const refused = replies.filter((line) => line.includes('suppression list'))
    if (refused.length !== more.length) throw new Error(`${refused.length} of ${more.length} listed recipients were refused`)
    return statements() - from
  }
  const others = await costOf([])
  return { others, withListed: entries === 0 ? others : await costOf(['user0@far.example']), memory }
}

const session = (world: World, more: readonly string[]): Promise<readonly string[]> =>
  dialogue(world, [
    'EHLO app.us.example',
    `MAIL FROM:<app@${SCOPE}>`,
    ...[...Array.from({ length: RECIPIENTS }, (_, n) => `new${n}@far.example`), ...more].map((address) => `RCPT TO:<${address}>`),
    'RSET',
  ])

/**
 * A queue with a million deferred messages, none of which is due during a run.
 */
import { constants, cpSync, existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../../src/store/sqlite/open-store.ts'
import { fillBacklog } from '../../../test/support/backlog.ts'
import type { Setting } from './subject.ts'

export const MESSAGES = 1_000_000
const DESTINATIONS = 10_000
const HOUR = 3_600_000

/** A destination that has mail in a filled queue of any size. */
export const FILLED_DESTINATION = destinationOf(42)

function destinationOf(n: number): string {
  return `d${String(n % DESTINATIONS).padStart(5, '0')}.example`
}

/** A folder with the filled queue, made unless it is there. */
export async function fillQueue({ filled, sized, say }: Setting): Promise<string> {
  const messages = sized(MESSAGES)
  const folder = join(filled, `page-${messages}`)
  if (existsSync(folder)) return folder
  const began = performance.now()
  const unfinished = `${folder}.new`
  rmSync(unfinished, { recursive: true, force: true })
  mkdirSync(unfinished)
  const { store, close } = await openStore(unfinished, { threads: false, create: true })
  await fillBacklog(store, {
    messages,
    now: Date.now(),
    destinationOf,
    dueIn: (n) => 12 * HOUR + (n / messages) * HOUR,
  })
  await close()
  renameSync(unfinished, folder)
  say(`filled with ${messages} messages in ${((performance.now() - began) / 1_000).toFixed(0)} s`)
  return folder
}

/** Copies a filled queue to a new folder, and returns that. */
export function copyQueue(filled: string, to: string): string {
  cpSync(filled, to, { recursive: true, mode: constants.COPYFILE_FICLONE })
  return to
}

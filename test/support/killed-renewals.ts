/** Daemons that are killed between the answer of an authority that rotates refresh tokens, and the use of its access token. */
import { expect } from 'vitest'
import { seededRandom } from '../../src/system/random.ts'
import { ANY_MESSAGE } from '../../src/store/message-conditions.ts'
import { openStoreReadOnly } from '../../src/store/sqlite/open-store.ts'
import { openReaderEngine } from '../../src/store/sqlite/reading/sqlite-reader.ts'
import { MINUTE } from '../../src/system/clock.ts'
import { filesIn, leaks } from './secret-search.ts'
import { killed, terminated, TokenSite } from './token-site.ts'

const USER = 'app@contoso.example'
/** Longest time from an answer to the kill, in ms: its arrival, its commit, and the login with its token. */
const REACH = 60
/** Time in which an answer arrives and is committed, in ms: half of the kills are in it. */
const COMMIT = 8

export interface KilledRenewals {
  readonly answers: number
  /** Answers that a kill has cut off before they were stored. */
  readonly lost: number
  /** Messages that were in delivery at three kills, and wait for an operator. */
  readonly corrupt: number
}

export async function killedRenewals({ kills, seed }: { readonly kills: number; readonly seed: number }): Promise<KilledRenewals> {
  const chance = seededRandom(seed).stream('kills')
  // A token of 20 s is not used after a start, so that each daemon asks for another one.
  await using site = await TokenSite.open({ clients: { app: {} }, rotates: true, lifetime: '20s' })
  const first = site.authority.logIn('app', USER)
  site.configure({ grant: 'refresh_token', client_id: 'app', refresh_token_file: site.write('m365.refresh-token', `${first}\n`) })
  const sent: string[] = []
  const logs = new Map<string, string>()
  for (let kill = 0; kill < kills; kill++) {
    const answered = new Promise<void>((resolve) => {
      site.onPrinted = ({ event }) => {
        if (event === 'authority') resolve()
      }
    })
    const daemon = await site.start()
    sent.push(`to${kill}@far.example`)
    await site.send(sent.at(-1))
    await answered
    await new Promise((resolve) => void setTimeout(resolve, chance() * (chance() < 0.5 ? COMMIT : REACH)))
    await killed(daemon)
    logs.set(`log ${kill}`, daemon.out + daemon.err)
  }
  const daemon = await site.start()
  sent.push('last@far.example')
  await site.send(sent.at(-1))
  await expect.poll(() => site.arrived.has('last@far.example')).toBe(true)
  await expect.poll(() => missing(site, sent), { timeout: 2 * MINUTE }).toEqual([])
  expect((await terminated(daemon)).code).toBe(0)
  const requests = site.authority.requests()
  expect(requests.filter(({ status }) => status !== 200)).toEqual([])
  logs.set('last log', daemon.out + daemon.err)
  expect(leaks(logs, site.authority.secrets())).toEqual([])
  // The queue has the tokens of the last answer, as documented: the search would find them elsewhere.
  expect(leaks(filesIn(site.queueDirectory), site.authority.secrets()).length).toBeGreaterThan(0)
  const queue = openStoreReadOnly(site.queueDirectory)
  const [kept] = await queue.reader.records.grants.all()
  await queue.close()
  const corrupt = sent.filter((to) => !site.arrived.has(to)).length
  return { answers: requests.length, lost: requests.length - (kept?.generation ?? 0), corrupt }
}

/** Recipients whose mail has neither arrived nor is in the queue corrupt, which takes mail that was in delivery at three kills. */
function missing({ queueDirectory, arrived }: TokenSite, sent: readonly string[]): readonly string[] {
  const reader = openReaderEngine(queueDirectory)
  try {
    const listed = reader.list({ ...ANY_MESSAGE, queue: 'corrupt' }, { after: 0, limit: 10_000 })
    const corrupt = new Set(listed.flatMap(({ recipients }) => recipients.map(({ address }) => address)))
    return sent.filter((to) => !arrived.has(to) && !corrupt.has(to))
  } finally {
    reader.close()
  }
}

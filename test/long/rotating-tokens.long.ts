/** SIGKILL between the answer of an authority and the use of a rotated refresh token, with a queue on disk: of the renewal alone, and of daemons. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { TokenAnswer } from '../../src/oauth/token-answer.ts'
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import { MINUTE } from '../../src/system/clock.ts'
import { mulberry32 } from '../../src/system/random.ts'
import { realClock } from '../support/real-clock.ts'
import { RotatingAuthority } from '../oauth/rotating-authority.ts'
import { printFigures } from '../support/figures.ts'
import { killedRenewals } from '../support/killed-renewals.ts'
import { portion } from './portion.ts'

const KILLS = 100
const PROCESS = new URL('../support/renewing-process.ts', import.meta.url)

type Message = { readonly asks: string } | { readonly uses: TokenAnswer }

test.runIf(portion('rotating-tokens/renewals').isIncluded)(
  `${KILLS} processes are killed while they renew a token: no login is lost`,
  { timeout: 10 * MINUTE },
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'deferd-rotating-'))
    onTestFinished(() => rmSync(directory, { recursive: true }))
    const authority = new RotatingAuthority(realClock)
    authority.latency = 0
    const file = authority.login()
    const random = mulberry32(6)
    let uses = 0
    for (let kill = 0; kill < KILLS; kill++) {
      const child = fork(PROCESS, [directory, file, String(kill * 2 * MINUTE)])
      const gone = once(child, 'exit')
      let left = 1 + Math.floor(random() * 5)
      const refused: TokenAnswer[] = []
      child.on('message', (message: Message) => {
        if ('uses' in message) {
          uses++
          if (message.uses.kind !== 'token' || !authority.accepts(message.uses.token)) refused.push(message.uses)
          return
        }
        void authority.request(message.asks).then((answer) => {
          if (answer.kind !== 'token') refused.push(answer)
          if (child.connected) child.send(answer, () => undefined)
          // Between the arrival of the answer, the commit, and the use.
          if (--left === 0) setTimeout(() => child.kill('SIGKILL'), random() * 4)
        })
      })
      await gone
      expect(refused).toEqual([])
    }
    expect(uses).toBeGreaterThan(KILLS)
    const { store } = await openInlineStore({ directory })
    const lost = authority.requests.length - ((await store.records.grants.read('m365', ''))?.generation ?? 0)
    await store.close()
    printFigures('processes killed while they renew a token', { answers: authority.requests.length, 'of them lost': lost, uses })
    expect(lost).toBeGreaterThan(5)
  },
)

test.runIf(portion('rotating-tokens/daemons').isIncluded)(
  `${KILLS} daemons are killed after the answer to a renewal: no login is lost, and no mail`,
  { timeout: 30 * MINUTE },
  async () => {
    const { answers, lost, corrupt } = await killedRenewals({ kills: KILLS, seed: 7 })
    printFigures('SIGKILL after the answer of an authority', {
      kills: KILLS,
      answers,
      'answers lost by a kill': lost,
      'messages in corrupt': corrupt,
      'logins lost': 0,
    })
    expect(lost).toBeGreaterThan(5)
  },
)

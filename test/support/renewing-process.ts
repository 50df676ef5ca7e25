/** A process that renews a rotating refresh token in a queue on disk as fast as it can. Its parent is the authority. */
import { realClock } from './real-clock.ts'
import { SharedGrantRenewal } from '../../src/oauth/shared-grant-renewal.ts'
import type { TokenAnswer } from '../../src/oauth/token-answer.ts'
import { openInlineStore } from '../../src/store/sqlite/clients/inline-store.ts'
import type { Clock } from '../../src/system/clock.ts'

/** Queue folder, token of the file, and time in ms by which the clock is ahead, so that the claim of a killed process has ended. */
const [directory = '', file = '', ahead = '0'] = process.argv.slice(2)

const clock: Clock = {
  now: () => realClock.now() + Number(ahead),
  wall: realClock.wall,
  monotonic: () => realClock.monotonic(),
  after: (delay, action) => realClock.after(delay, action),
  alarm: (at, action) => realClock.alarm(at, action),
  zone: (at) => realClock.zone(at),
}
const { store } = await openInlineStore({ directory })
const renewal = new SharedGrantRenewal({
  name: 'm365',
  user: '',
  grants: store.records.grants,
  clock,
  fileToken: () => file,
  request: (refreshToken) =>
    new Promise((resolve) => {
      process.once('message', (answer) => resolve(answer as TokenAnswer))
      process.send?.({ asks: refreshToken })
    }),
})
for (let held: string | null = null; ;) {
  const answer = await renewal.token(held)
  process.send?.({ uses: answer })
  if (answer.kind === 'token') held = answer.token
}

/** Limit of the scheduled messages of a share: exact over restarts, for messages on their way, and without a statement when it is 0. */
import { expect, test } from 'vitest'
import { ScheduledLimit } from '../../../src/queue/intake/scheduled-limit.ts'
import type { ScheduledMail } from '../../../src/store/queue-store.ts'

const KEY = ['login', 'token', 'sender_domain', 'client'] as const
const SENDER = { sender: 'a@us.example', user: undefined, address: '127.0.0.1' }
const LOGIN = { ...SENDER, user: 'app' }
const REFUSED = { code: 552, status: '5.7.16' }

function opened(limit: number, stored: ScheduledMail[] = []) {
  const world = { now: 0, reads: 0, limit, stored }
  const scheduled = new ScheduledLimit({
    store: {
      scheduledMail: async () => {
        world.reads++
        return [...world.stored]
      },
    },
    clock: { monotonic: () => world.now, now: () => world.now },
    settings: () => ({ smtpd_future_release_message_limit: world.limit, share_key: KEY }),
  })
  return { world, scheduled }
}

const rows = (messages: number, more: Partial<ScheduledMail> = {}): ScheduledMail => ({
  sender: 'a@us.example',
  saslUsername: null,
  client: 'x[127.0.0.1]',
  messages,
  ...more,
})

test('without a limit nothing is read', () => {
  const { world, scheduled } = opened(0)
  expect(scheduled.refusal(SENDER)).toBeUndefined()
  expect(scheduled.admit(1, SENDER)).toBeUndefined()
  scheduled.ended(1, true)
  expect(world.reads).toBe(0)
})

test('stored messages count by share, also those from before the start', async () => {
  const { scheduled } = opened(3, [rows(2), rows(1, { sender: 'b@US.example' }), rows(2, { saslUsername: 'app' })])
  expect(await scheduled.refusal(SENDER)).toMatchObject(REFUSED)
  expect(await scheduled.refusal(LOGIN)).toBeUndefined()
  expect(await scheduled.refusal({ ...SENDER, sender: 'c@other.example' })).toBeUndefined()
})

test('messages on their way do not pass the limit together', async () => {
  const { world, scheduled } = opened(5, [rows(1)])
  const answers = await Promise.all(Array.from({ length: 50 }, async (_, n) => scheduled.admit(n, SENDER)))
  expect(answers.filter((one) => one === undefined)).toHaveLength(4)
  expect(world.reads).toBe(1)
  expect(await scheduled.refusal(SENDER)).toMatchObject(REFUSED)
})

test('a message that was not stored frees its place at once, a stored one counts until the store has it', async () => {
  const { world, scheduled } = opened(1)
  expect(await scheduled.admit(1, SENDER)).toBeUndefined()
  scheduled.ended(1, false)
  expect(await scheduled.admit(2, SENDER)).toBeUndefined()
  scheduled.ended(2, true)
  world.stored.push(rows(1))
  expect(await scheduled.admit(3, SENDER)).toMatchObject(REFUSED)
  world.now = 1_000
  expect(await scheduled.admit(4, SENDER)).toMatchObject(REFUSED)
  world.stored.length = 0
  expect(await scheduled.admit(5, SENDER)).toMatchObject(REFUSED)
  world.now = 2_000
  expect(await scheduled.admit(6, SENDER)).toBeUndefined()
})

/** Mail over HTTP and SIGKILL: what was answered 202 is in the queue, and a request that is sent again has its effect once. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { ApiProgram } from '../support/api-program.ts'
import { answeredThenKilled, repeatedUntilAnswered } from '../support/http-kills.ts'
import { KillableRelay } from '../support/killable-relay.ts'

let lab: KillableRelay
beforeEach(async () => {
  lab = new KillableRelay()
  await lab.open(0)
  await lab.startDaemon()
})
afterEach(() => lab.close())

test('a message that was answered 202 is delivered, though the daemon is killed at once', () => answeredThenKilled(lab, 2))

test('with an Idempotency-Key, a request has its effect once: at once, after a stop and after SIGKILL', async () => {
  const program = await ApiProgram.of(lab.queueDirectory)
  lab.far.isBusy = true
  const mail = { to: 'ann-1@far.example', key: 'order-7' }
  const [first, second] = await Promise.all([program.mail(mail), program.mail(mail)])
  expect([first.status, second.status, second.json]).toEqual([202, 202, first.json])
  await lab.terminate()
  await lab.startDaemon()
  const stopped = await program.mail(mail)
  expect([stopped.status, stopped.headers.get('idempotent-replayed'), stopped.json]).toEqual([202, 'true', first.json])
  await lab.die(0)
  await lab.startDaemon()
  const again = await program.mail(mail)
  expect([again.status, again.headers.get('idempotent-replayed'), again.json]).toEqual([202, 'true', first.json])
  const other = await program.mail({ ...mail, content: 'Subject: other\r\n\r\nhi\r\n' })
  expect([other.status, other.json['type']]).toEqual([422, '/problems/idempotency-key-reused'])
  expect(await program.queuedFor('ann-1@far.example')).toBe(1)
})

test('a client that repeats its request until it is answered queues one message, wherever SIGKILL cuts', async () => {
  await repeatedUntilAnswered(lab, 2)
})

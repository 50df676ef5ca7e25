import { createTransport } from 'nodemailer'
import { beforeAll, afterAll, expect, test } from 'vitest'
import { createWorld, matchers, type DeferdMatchers, type World } from '../../../src/testkit/index.ts'

declare module 'vitest' {
  // oxlint-disable-next-line no-unused-vars -- merged with vitest's own, which has these parameters
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown> extends DeferdMatchers {}
}

expect.extend(matchers)

let world: World

beforeAll(async () => {
  world = await createWorld({ seed: 7, config: { maximal_queue_lifetime: '1d', delay_warning_time: '1h' } })
  world.destination('slow.example').greylists('5m')
  world.destination('gone.example').isDown()
  world.destination('picky.example').rejects()
  world.destination('lossy.example').dropsAfterDot()
  const to = ['ann@slow.example', 'eve@gone.example', 'bob@picky.example', 'joe@lossy.example']
  await createTransport(world.transport()).sendMail({ from: 'app@us.example', to, text: 'hi' })
  await world.settle()
})

afterAll(() => world.close())

const ann = () => world.recipient('ann@slow.example')
const eve = () => world.recipient('eve@gone.example')
const bob = () => world.recipient('bob@PICKY.example')
const joe = () => world.recipient('joe@lossy.example')

test('match what they should', () => {
  expect(ann()).toHaveBeenDelivered()
  expect(ann()).toHaveBeenDeliveredOnce()
  expect(ann()).toHaveAttemptedAt([0, 300])
  expect(ann()).toHaveStartedWithin('1s')
  expect(ann()).toHaveStartedWithin(0)
  expect(ann()).toHaveBeenDeferred(1)
  expect(ann()).toHaveCausedNotices([])
  expect(bob()).toHaveBounced()
  expect(bob()).toHaveBounced({ status: '5.1.1', reply: 'no such user' })
  expect(eve()).toHaveExpired()
  expect(eve()).toHaveBeenDelayed()
  expect(eve()).toHaveBeenDeferred()
  expect(eve()).toHaveCausedNotices(['delay', 'failure'])
  expect(joe()).toHaveBeenDelivered()
})

test('do not match what they should not', () => {
  expect(ann()).not.toHaveBounced()
  expect(ann()).not.toHaveExpired()
  expect(ann()).not.toHaveBeenDelayed()
  expect(ann()).not.toHaveAttemptedAt([0])
  expect(ann()).not.toHaveBeenDeferred(2)
  expect(bob()).not.toHaveBeenDelivered()
  expect(bob()).not.toHaveBounced({ status: '5.7.1' })
  expect(bob()).not.toHaveBeenDeferred()
  expect(eve()).not.toHaveBeenDeliveredOnce()
  expect(joe()).not.toHaveBeenDeliveredOnce()
  expect(world.recipient('nobody@any.example').accepted).toBe(0)
})

test('a failure prints the expectation first, then the events', () => {
  expect(() => expect(bob()).toHaveBeenDelivered()).toThrow(
    /^expected bob@picky\.example to have been delivered, but its last attempt was bounced 5\.1\.1 \(550 5\.1\.1 no such user\)\n {2}\+0s accepted from app@us\.example, \d+ bytes\n {2}\+0s bounced: mx\.picky\.example replied 550 5\.1\.1 no such user at rcpt\n {2}\+0s failure notice to app@us\.example\n {2}seed 7$/,
  )
  expect(() => expect(ann()).not.toHaveAttemptedAt([0, 300])).toThrow('expected ann@slow.example not to have been tried at 0, 300 s, but')
  expect(() => expect(joe()).toHaveBeenDeliveredOnce()).toThrow('with copies: 2')
  expect(() => expect(world.recipient('nobody@any.example')).toHaveExpired()).toThrow('no message for it was accepted')
  expect(() => expect('ann@slow.example').toHaveExpired()).toThrow('expected a recipient')
})

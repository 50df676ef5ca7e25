import { afterEach, beforeEach, expect, test } from 'vitest'
import { DAY, HOUR, MINUTE } from '../../src/system/clock.ts'
import { deferred, delivered, first, queue, settleOne } from '../conformance/mail.ts'
import { NOW, Operator } from '../support/operator.ts'

const YEAR = 365 * DAY

let operator: Operator

beforeEach(async () => {
  operator = new Operator()
  const { clock } = operator
  await operator.own(async (store) => {
    await queue(store, { at: NOW - HOUR, to: [{ address: 'ann@far.example', dueAt: NOW + 5 * MINUTE }] })
    await store.upkeep.saveClock({ time: NOW, offset: 0, uptime: clock.uptime(), boot: clock.boot })
    await store.records.audit.add({ at: NOW, who: 'root', action: 'hold', arguments: '', changed: 1 })
  })
})
afterEach(() => operator.leave())

interface Listed {
  readonly queue_id: string
  readonly arrival_time: number
  readonly next_attempt_time: number
  readonly time: number
}

const json = async (...argv: readonly string[]) => JSON.parse(await operator.says(...argv, '--json')) as Listed

test.each([10 * YEAR, -10 * YEAR])('after the wall clock was set by %i ms, commands print times of the wall clock', async (step) => {
  operator.clock.step(step)
  const now = operator.clock.now() / 1000
  const listed = await json('queue', 'list')
  expect([listed.arrival_time, listed.next_attempt_time]).toEqual([now - 3600, now + 300])
  expect(await operator.says('queue', 'show', listed.queue_id)).toContain('(in 5m)')
  expect((await json('queue', 'show', listed.queue_id)).next_attempt_time).toBe(now + 300)
  expect((await json('audit')).time).toBe(now)
  expect(await operator.says('queue', 'list', '--older-than', '30m')).toContain(listed.queue_id)
  expect(await operator.says('queue', 'list', '--older-than', '2h', '--count')).toBe('0\n')
  expect(await operator.says('queue', 'list', '--younger-than', '30m', '--count')).toBe('0\n')
  expect(await operator.says('queue', 'list', '--younger-than', '2h')).toContain(listed.queue_id)
})

test.each([10 * YEAR, -10 * YEAR])('after the wall clock was set by %i ms, a flush makes mail due now', async (step) => {
  operator.clock.step(step)
  await operator.says('queue', 'flush', '--queue', 'incoming', '--older-than', '30m')
  expect((await json('queue', 'list')).next_attempt_time).toBe(operator.clock.now() / 1000)
  expect((await operator.says('audit')).split('\n')[1]).toContain(new Date(operator.clock.now()).toISOString().slice(0, 10))
})

interface Facts {
  readonly left_time: number
  readonly since: number
  readonly last_time: number
  readonly oldest_arrival_time: number
  readonly last_hour: { readonly accepted: number; readonly delivered: number }
}

test.each([10 * YEAR, -10 * YEAR])('after the wall clock was set by %i ms, history, causes and status agree with it', async (step) => {
  await operator.own(async (store) => {
    const waits = await queue(store, { at: NOW - HOUR, leased: true, to: [{ address: 'ann@busy.example' }] })
    await settleOne(store, waits, deferred(first(waits), NOW + MINUTE), NOW - 30 * MINUTE)
    const gone = await queue(store, { at: NOW - 20 * MINUTE, leased: true, to: [{ address: 'eve@near.example' }] })
    await settleOne(store, gone, delivered(first(gone), NOW - 10 * MINUTE), NOW - 10 * MINUTE)
  })
  operator.clock.step(step)
  const now = operator.clock.now() / 1000
  const facts = async (...argv: readonly string[]) => JSON.parse((await operator.says(...argv, '--json')).split('\n')[0] ?? '') as Facts
  expect((await facts('history', 'list', '--since', '11m')).left_time).toBe(now - 600)
  expect(await operator.says('history', 'list', '--since', '9m', '--tsv')).toBe('')
  const cause = await facts('queue', 'causes', '--destination', 'busy.example')
  expect([cause.since, cause.last_time]).toEqual([now - 1800, now - 1800])
  const status = await facts('status')
  expect(status.oldest_arrival_time).toBe(now - 3600)
  expect(status.last_hour).toMatchObject({ accepted: 3, delivered: 1 })
})

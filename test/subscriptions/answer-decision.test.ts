import { describe, expect, test } from 'vitest'
import { isRefusal, nextStep, type TargetAnswer } from '../../src/subscriptions/answer-decision.ts'
import { DAY, HOUR, MINUTE, SECOND, type Duration } from '../../src/system/clock.ts'

const response = (code: number, retryAfter: Duration | null = null): TargetAnswer => ({
  kind: 'response',
  code,
  retryAfter,
  text: String(code),
})
const LOST: TargetAnswer = { kind: 'failed', text: 'connection refused' }

const after = (answer: TargetAnswer, tries = 1, refusals = 0, draw = 0) => nextStep(answer, { tries, refusals, draw })

test.each([200, 201, 204, 299])('%i: the events are sent', (code) => expect(after(response(code))).toEqual({ kind: 'sent' }))

test('410: the subscription is disabled', () => expect(after(response(410))).toEqual({ kind: 'disable' }))

describe('waits', () => {
  test.each([
    [1, 5 * SECOND],
    [2, 10 * SECOND],
    [7, 320 * SECOND],
    [10, 2560 * SECOND],
    [11, HOUR],
    [100, HOUR],
  ])('after failure %i: %i ms', (tries, wait) => expect(after(LOST, tries)).toEqual({ kind: 'wait', wait }))

  test('between the refusals of an event are those of its refusals, also after an outage', () => {
    expect(after(response(400), 30, 1)).toEqual({ kind: 'wait', wait: 5 * SECOND })
    expect(after(response(400), 34, 5)).toEqual({ kind: 'wait', wait: 80 * SECOND })
    // Several events in one request tell nothing of one of them.
    expect(after(response(400), 3, 0)).toEqual({ kind: 'wait', wait: 20 * SECOND })
  })

  test('are spread by up to a fifth', () => expect(after(LOST, 1, 0, 0.5)).toEqual({ kind: 'wait', wait: 5_500 }))

  test('are as long as Retry-After asks for, at most a day, and never shorter than the own wait', () => {
    expect(after(response(503, 10 * MINUTE))).toEqual({ kind: 'wait', wait: 10 * MINUTE })
    expect(after(response(429, SECOND))).toEqual({ kind: 'wait', wait: 5 * SECOND })
    expect(after(response(503, 10 * DAY))).toEqual({ kind: 'wait', wait: DAY })
  })
})

describe('an event is parked', () => {
  test.each([400, 401, 404, 422])('at its sixth refusal with %i', (code) => {
    expect(after(response(code), 5, 5)).toMatchObject({ kind: 'wait' })
    expect(after(response(code), 6, 6)).toEqual({ kind: 'park' })
  })

  test.each([302, 408, 425, 429, 500, 503])('never for %i', (code) => {
    expect(isRefusal(response(code))).toBe(false)
    expect(after(response(code), 100, 0)).toMatchObject({ kind: 'wait' })
  })

  test('never for a connection that fails', () => expect(isRefusal(LOST)).toBe(false))
})

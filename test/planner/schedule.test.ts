/** Plans: the attempt times of a message up to its expiry, and the effects of outages, greylisting and notices. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { PolicyError } from '../../src/backoff/policy.ts'
import { compileAlone, compileRetryPolicy } from '../../src/backoff/retry-policy.ts'
import { DAY, days, HOUR, hours, MINUTE, minutes, seconds } from '../../src/system/clock.ts'
import { readEximRetry, readMainCf } from '../../src/simulator/import-settings.ts'
import { goalIsMet, searchGoal, shareWithin } from '../../src/simulator/goal-search.ts'
import { planOf, planOutage } from '../../src/planner/plan.ts'
import { plannedAttempts } from '../../src/planner/schedule.ts'

const doubling = (minimal: number, maximal: number) => compileRetryPolicy({ retry_backoff: 'doubling', minimal, maximal })

describe('the last attempt', () => {
  test('is at the expiry itself', () => {
    const attempts = plannedAttempts({ policy: doubling(seconds(300), seconds(4000)), lifetime: days(2) })
    expect(attempts.slice(0, 6).map((at) => at / 1000)).toEqual([0, 300, 900, 2100, 4500, 8500])
    expect(attempts.at(-1)).toBe(days(2))
  })

  test('is the only one with a lifetime of 0', () => {
    expect(plannedAttempts({ policy: doubling(1000, 1000), lifetime: 0 })).toEqual([0])
  })

  test('of a policy with its own limit is earlier', () => {
    expect(plannedAttempts({ policy: compileAlone('tcp'), lifetime: days(2) }).at(-1)).toBe(seconds(511))
  })

  test('for any settings: attempts ascend, keep their minimum distance, and end with the lifetime', () => {
    const settings = fc.tuple(fc.integer({ min: 200_000, max: 1e7 }), fc.nat(1e7), fc.nat(1e8))
    fc.assert(
      fc.property(settings, fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(), ([minimal, more, lifetime], jitter, seed) => {
        const attempts = plannedAttempts({ policy: doubling(minimal, minimal + more), lifetime, jitter, seed })
        expect(attempts[0]).toBe(0)
        expect(attempts.at(-1)).toBe(lifetime)
        for (const [i, at] of attempts.entries()) {
          const previous = attempts[i - 1]
          if (previous === undefined || at === lifetime) continue
          expect(at - previous).toBeGreaterThanOrEqual(minimal)
          expect(at - previous).toBeLessThanOrEqual((minimal + more) * (1 + jitter) + 1)
        }
      }),
      { numRuns: 50 },
    )
  })

  test('with the random draws of one message: each draw is named, and jitter does not accumulate in waits that build on each other', () => {
    const rules = compileRetryPolicy({ retry_backoff: 'exim(F,1h,20m; G,2d,1h,2)', minimal: 1000, maximal: 1000 })
    const asked: string[] = []
    const draw = (what: string, step: number) => (asked.push(`${what} ${step}`), 0.5)
    const attempts = plannedAttempts({ policy: rules, lifetime: hours(14), jitter: 0.2, draw })
    // 20, 20, 20 min, then 1, 2, 4 h by the rules; each a tenth longer.
    expect(attempts.map((at) => at / MINUTE)).toEqual([0, 22, 44, 66, 132, 264, 528, 840])
    expect(asked).toEqual([1, 2, 3, 4, 5, 6, 7].map((step) => `jitter ${step}`))
  })

  test('of a plan with too many attempts is refused', () => {
    expect(() => plannedAttempts({ policy: doubling(1, 1), lifetime: days(30) })).toThrow(PolicyError)
  })
})

describe("Postfix's grid", () => {
  const onGrid = (lifetime: number, mainCf = '') =>
    plannedAttempts({ ...readMainCf(`${mainCf}\nmaximal_queue_lifetime = ${lifetime}s`, 'main.cf').schedule }).map((at) => at / 1000)

  test('small settings', () => {
    const small = 'minimal_backoff_time = 10s\nmaximal_backoff_time = 40s\nqueue_run_delay = 10s'
    expect(onGrid(200, small)).toEqual([0, 10, 20, 40, 80, 120, 160, 200])
  })
  test('no lifetime, five minutes, an hour, a day, five days', () => {
    expect(onGrid(0)).toEqual([0])
    expect(onGrid(300)).toHaveLength(2)
    expect(onGrid(3600)).toHaveLength(6)
    expect(onGrid(3600).at(-1)).toBe(4800)
    expect(onGrid(86_400)).toHaveLength(26)
    expect(onGrid(86_400).at(-1)).toBe(88_800)
    expect(onGrid(432_000)).toHaveLength(108)
    expect(onGrid(432_000).at(-1)).toBe(433_200)
  })
})

describe('costs of known schedules', () => {
  const table: readonly (readonly [
    policy: string,
    lifetime: number,
    by1h: number,
    by24h: number,
    greylist: number,
    ...outages: string[],
  ])[] = [
    ['exim', 4, 5, 15, 10, '8/15', '191/263', '153/360'],
    ['qmail', 7, 4, 15, 2, '23/47', '69/140', '138/287'],
    ['opensmtpd', 4, 4, 15, 2, '23/47', '69/140', '138/287'],
    ['kumomta', 7, 3, 7, 15, '40/80', '540/612', '2220/2508'],
    ['kumomta(M=4h)', 7, 3, 9, 15, '40/80', '80/240', '110/240'],
    ['fixed(15m)', 5, 5, 97, 10, '8/15', '8/15', '8/15'],
    ['sendmail', 5, 2, 25, 55, '30/60', '30/60', '30/60'],
    ['exchange', 2, 13, 151, 4, '6/10', '5/10', '5/10'],
    ['zonemta', 2, 5, 12, 0, '60/66', '120/240', '104/240'],
    ['haraka', 30, 6, 11, 2, '7/13', '371/443', '1488/1776'],
    ['rfc5321', 5, 3, 12, 25, '75/150', '78/150', '77/150'],
  ]
  const inMinutes = (duration: number | null | undefined) => Math.round((duration ?? Number.NaN) / MINUTE)
  for (const [text, lifetime, by1h, by24h, greylist, ...outages] of table) {
    test(text, () => {
      const plan = planOf({ name: text, schedule: { policy: compileAlone(text), lifetime: days(lifetime) }, warnings: [] })
      expect([plan.tries.by1h, plan.tries.by24h]).toEqual([by1h, by24h])
      expect(inMinutes(plan.greylisting.find(({ delay }) => delay === minutes(5))?.extra)).toBe(greylist)
      const cells = [HOUR, 12 * HOUR, 2 * DAY].map((length) => plan.outages.find(({ outage }) => outage === length))
      expect(cells.map((cell) => `${inMinutes(cell?.mean)}/${inMinutes(cell?.worst)}`)).toEqual(outages)
    })
  }

  test('Postfix', () => {
    const plan = planOf(readMainCf('', 'main.cf'))
    expect(plan.tries).toEqual({ by1h: 5, by24h: 25, lifetime: 108 })
    const cells = [HOUR, 12 * HOUR, 2 * DAY].map((length) => plan.outages.find(({ outage }) => outage === length))
    expect(cells.map((cell) => `${inMinutes(cell?.mean)}/${inMinutes(cell?.worst)}`)).toEqual(['20/26', '36/70', '35/70'])
  })

  test('mail with a lifetime of two days is lost in an outage of two days, and more of it in one of five', () => {
    const attempts = plannedAttempts({ policy: compileAlone('exchange'), lifetime: days(2) })
    expect(planOutage(attempts, DAY).lost).toBe(0)
    expect(planOutage(attempts, days(2)).lost).toBeCloseTo(0.023, 3)
    // An outage of e days loses 1 − 2/e of its mail.
    const long = planOutage(attempts, days(5))
    expect(long.lost).toBeCloseTo(1 - (2 * Math.log(5.5 / 4.5)) / 1, 6)
    expect(long.mean).toBeNull()
    expect(long.worst).toBeNull()
  })

  test('1,000 clients that retry every second are 1,000 failed requests per second, and with a longest wait of M, 1,000/M', () => {
    const everySecond = plannedAttempts({ policy: compileAlone('fixed(1s)'), lifetime: HOUR })
    expect(1_000 * planOutage(everySecond, seconds(600)).attemptRate).toBeCloseTo(1_000, 6)
    const capped = plannedAttempts({ policy: doubling(seconds(1), seconds(64)), lifetime: days(1) })
    expect(1_000 * planOutage(capped, HOUR).attemptRate).toBeCloseTo(1_000 / 64, 6)
    expect(planOutage(everySecond, days(1)).attemptRate).toBe(0)
  })

  test('integrals agree with counting', () => {
    const attempts = plannedAttempts({ policy: doubling(seconds(300), seconds(4000)), lifetime: days(2) })
    const outage = hours(7)
    let sum = 0
    let worst = 0
    const samples = 20_000
    for (let i = 0; i < samples; i++) {
      const end = outage * (0.9 + (0.2 * (i + 0.5)) / samples)
      const wait = (attempts.find((at) => at >= end) ?? Number.NaN) - end
      sum += wait
      worst = Math.max(worst, wait)
    }
    const exact = planOutage(attempts, outage)
    expect(Math.abs((exact.mean ?? 0) - sum / samples)).toBeLessThan(seconds(1))
    expect(Math.abs((exact.worst ?? 0) - worst)).toBeLessThan(seconds(1))
  })

  test('the first failure after the time sends the delay notice; the failure notice replaces a late one', () => {
    const schedule = { policy: doubling(seconds(300), seconds(4000)), lifetime: days(2) }
    const warning = (...warnings: number[]) => planOf({ name: 'x', schedule, warnings }).warning
    expect(warning(hours(4), hours(24))).toBe(seconds(16_500))
    expect(warning(0)).toBeNull()
    expect(warning(days(2))).toBeNull()
    expect(planOf({ name: 'x', schedule, warnings: [] }).bounce).toBe(days(2))
  })
})

describe('settings of other mailers', () => {
  test('main.cf: defaults, units, continued lines, comments, references', () => {
    const setup = readMainCf(
      '# a comment\nmyhostname = a.example\nmaximal_queue_lifetime = 3\ndelay_warning_time = 4\nbase = 20m\n' +
        'minimal_backoff_time = $base\nmaximal_backoff_time =\n   ${minimal_backoff_time}\nqueue_run_delay=600\n',
      'main.cf',
    )
    expect(setup.schedule.lifetime).toBe(days(3))
    expect(setup.schedule.grid).toBe(seconds(600))
    expect(setup.schedule.policy.bounds).toEqual({ minimal: minutes(20), maximal: minutes(20) })
    expect(setup.warnings).toEqual([hours(4)])
  })
  test('main.cf: a maximum below the minimum loses, as in Postfix', () => {
    expect(readMainCf('maximal_backoff_time = 60s', 'main.cf').schedule.policy.bounds).toEqual({
      minimal: seconds(300),
      maximal: seconds(300),
    })
  })
  test('main.cf: an invalid time or a cyclic reference is refused', () => {
    expect(() => readMainCf('queue_run_delay = often', 'main.cf')).toThrow(/queue_run_delay = often is not a time/)
    expect(() => readMainCf('queue_run_delay = $queue_run_delay', 'main.cf')).toThrow(/refers to itself/)
  })

  const eximConf = `
delay_warning = 4h:8h
begin routers
dnslookup:
  driver = dnslookup
begin retry
# This rule holds for refused users
*.example   rcpt_4xx  F,1h,10m
alice@home.example * senders=: F,1h,5m
*           *         F,2h,15m; \\
                      G,16h,1h,1.5; F,4d,6h
never.example *
begin rewrite
*@a b@c
`
  test('exim.conf: the rules of its retry section', () => {
    const setups = readEximRetry(eximConf, 'exim.conf')
    expect(setups.map(({ name }) => name)).toEqual(['exim *.example rcpt_4xx', 'exim alice@home.example', 'exim *', 'exim never.example'])
    const plans = setups.map((setup) => planOf(setup))
    expect(plans.map(({ tries }) => tries.lifetime)).toEqual([7, 13, 28, 1])
    expect(plans[2]?.warning).toBe(hours(4) + minutes(30))
  })
  test('retry rules without a file', () => {
    const [setup] = readEximRetry('* * F,2h,15m; G,16h,1h,1.5; F,4d,6h', 'rules')
    expect(
      setup &&
        planOf(setup)
          .attempts.slice(0, 11)
          .map((at) => at / 1000),
    ).toEqual([0, 900, 1800, 2700, 3600, 4500, 5400, 6300, 7200, 10_800, 16_200])
  })
  test('wrong or missing rules are refused', () => {
    expect(() => readEximRetry('* * F,2h', 'rules')).toThrow(/must read F,until,wait/)
    expect(() => readEximRetry('begin retry\nbegin rewrite', 'rules')).toThrow(/no retry rules found/)
  })
})

describe('the search', () => {
  const goal = { share: 0.99, within: minutes(30), tries: 100, outage: hours(12), lifetime: days(2) }

  test('finds settings that meet the goal', () => {
    const found = searchGoal(goal)
    expect(goalIsMet(goal, found)).toBe(true)
    if (found === null) return
    const attempts = plannedAttempts({ policy: doubling(found.minimal, found.maximal), lifetime: goal.lifetime })
    expect(attempts).toHaveLength(found.tries)
    expect(shareWithin(attempts, goal.outage, goal.within)).toBeGreaterThanOrEqual(0.99)
  })

  test('is within 5 % of an exhaustive search', () => {
    const wish = { ...goal, share: 0.9, within: minutes(45), outage: hours(5) }
    let fewest = Infinity
    for (let minimal = 5 * MINUTE; minimal <= 2 * HOUR; minimal += 5 * MINUTE) {
      for (let maximal = minimal; maximal <= 5 * HOUR; maximal += MINUTE) {
        const attempts = plannedAttempts({ policy: doubling(minimal, maximal), lifetime: wish.lifetime })
        if (attempts.length < fewest && shareWithin(attempts, wish.outage, wish.within) >= wish.share) fewest = attempts.length
      }
    }
    expect(searchGoal(wish)?.tries).toBeLessThanOrEqual(Math.ceil(fewest * 1.05))
  })

  test('reports when the goal takes more attempts than wished, and when no setting meets it', () => {
    const strict = { ...goal, tries: 20 }
    const found = searchGoal(strict)
    expect(found?.tries).toBeGreaterThan(20)
    expect(goalIsMet(strict, found)).toBe(false)
    expect(searchGoal({ ...goal, outage: days(5) })).toBeNull()
  })
})

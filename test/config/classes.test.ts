/** The [class.NAME] tables and what names a class: every mistake is refused, all at once. */
import { expect, test } from 'vitest'
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import { configFrom } from '../../src/config/load.ts'
import { ConfigError } from '../../src/config/values/problem.ts'
import { DAY, HOUR } from '../../src/system/clock.ts'

function problemsOf(values: Readonly<Record<string, unknown>>): readonly string[] {
  try {
    configFrom(values, 'relay.example')
    return []
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.problems.map(({ where, text }) => `${where}: ${text}`)
  }
}

const NORMAL = { normal: { weight: 10 } }

test('a table has a weight, and may have a reserve, clients that may ask for it, and parameters', () => {
  const fast = {
    weight: 100,
    reserve: '5%',
    priority: 4,
    allow: ['app', '10.0.0.0/24'],
    maximal_queue_lifetime: '1h',
    delay_warning_time: '10m, 30m',
  }
  const { config } = configFrom({ class: { ...NORMAL, fast } }, 'relay.example')
  expect(config.class.get('fast')).toEqual({
    name: 'fast',
    weight: 100,
    reserve: 0.05,
    priority: 4,
    allow: ['app', '10.0.0.0/24'],
    settings: { maximal_queue_lifetime: HOUR, delay_warning_time: [HOUR / 6, HOUR / 2] },
  })
  expect(config.class.get('normal')).toEqual({ name: 'normal', weight: 10, reserve: 0, priority: null, allow: [], settings: {} })
})

test('parameters of a class come before those of destinations; other mail has these', () => {
  const { config } = configFrom(
    {
      class: { ...NORMAL, fast: { weight: 100, maximal_queue_lifetime: '1h' } },
      destination: { 'far.example': { maximal_queue_lifetime: '1d', minimal_backoff_time: '10m' } },
    },
    'relay.example',
  )
  const policies = new DestinationPolicies(config)
  expect(policies.forMail('far.example', { class: 'fast' })).toMatchObject({
    settings: { maximal_queue_lifetime: HOUR, bounce_queue_lifetime: HOUR, minimal_backoff_time: HOUR / 6 },
  })
  for (const name of ['normal', undefined, 'gone'])
    expect(policies.forMail('far.example', { class: name })).toMatchObject({ settings: { maximal_queue_lifetime: DAY } })
  expect(policies.forMail('far.example', { class: 'fast' })).toBe(policies.forMail('far.example', { class: 'fast' }))
})

test('each value has the table that sets it as its origin, and none when it is global', () => {
  const { config } = configFrom(
    {
      minimal_backoff_time: '1m',
      class: { ...NORMAL, fast: { weight: 100, maximal_queue_lifetime: '1h' } },
      provider: { big: { mx: ['.big.example'], maximal_backoff_time: '3h', minimal_backoff_time: '2m' } },
      destination: { 'Far.example': { maximal_queue_lifetime: '1d', minimal_backoff_time: '10m' } },
    },
    'relay.example',
  )
  const policies = new DestinationPolicies(config, { of: () => 'big' })
  const far = '[destination."far.example"]'
  const other = { minimal_backoff_time: far, maximal_backoff_time: '[provider.big]' }
  const normal = { ...other, maximal_queue_lifetime: far, bounce_queue_lifetime: far }
  expect(Object.fromEntries(policies.for('far.example').origins)).toEqual(normal)
  expect(Object.fromEntries(policies.forMail('far.example', { class: 'normal' }).origins)).toEqual(normal)
  const [fast, big] = ['[class.fast]', '[provider.big]']
  expect(Object.fromEntries(policies.forMail('far.example', { class: 'fast' }).origins)).toEqual({
    ...other,
    maximal_queue_lifetime: fast,
    bounce_queue_lifetime: fast,
  })
  expect(Object.fromEntries(policies.for('near.example').origins)).toEqual({ minimal_backoff_time: big, maximal_backoff_time: big })
})

test('all mistakes of the tables are named at once', () => {
  const names = Array.from({ length: 8 }, (_, n) => [`c${n}`, { weight: 1, reserve: '7%' }] as const)
  expect(
    problemsOf({
      class: {
        ...Object.fromEntries(names),
        normal: { weight: 0, reserve: '60%', allow: ['normal'], colour: 'red' },
        'Bad Name': { allow: ['10.0.0.0/99', 'app', '::1/200', '', 'token:'], maximal_queue_lifetime: 'soon' },
      },
    }).toSorted(),
  ).toEqual([
    expect.stringContaining('class.Bad Name: allow: "" is no user of AUTH, token:NAME or network'),
    expect.stringContaining('class.Bad Name: allow: "token:" is no user of AUTH, token:NAME or network'),
    expect.stringMatching(/class\.Bad Name: allow: expected a network such as .*, got 10\.0\.0\.0\/99/),
    expect.stringMatching(/class\.Bad Name: allow: expected a network such as .*, got ::1\/200/),
    expect.stringContaining('class.Bad Name: expected a name of lower-case letters'),
    expect.stringContaining('class.Bad Name: weight is missing'),
    expect.stringContaining('class.Bad Name: maximal_queue_lifetime: expected a time'),
    expect.stringContaining('class: 10 classes, the maximum is 8: join some'),
    expect.stringContaining('class: the reserves are 56% together, the maximum is 50%: lower some'),
    expect.stringContaining('class.normal: allow: normal is the class itself; name users of AUTH'),
    expect.stringContaining('class.normal: unknown key colour; known: weight, reserve, priority, allow'),
    expect.stringContaining('class.normal: reserve: expected a percentage from 0% to 50%'),
    expect.stringContaining('class.normal: weight: expected a whole number from 1 to 1000'),
  ])
})

test('priorities are whole numbers in the order of the weights, each once', () => {
  const of = (low: unknown, high: unknown): readonly string[] =>
    problemsOf({ class: { normal: { weight: 10, priority: low }, fast: { weight: 100, priority: high } } })
  expect(of(0, 4)).toEqual([])
  expect(of(4, 4)).toEqual([expect.stringContaining('priorities in the order of their weights')])
  expect(of(4, 0)).toEqual([expect.stringContaining('class.normal: priority: a class of more weight')])
  for (const wrong of [10, -10, 1.5, 'high'])
    expect(of(wrong, 4)).toEqual([expect.stringContaining('expected a whole number from -9 to 9')])
  // Without its weight, the order of a class is unknown.
  expect(problemsOf({ class: { normal: { weight: 10, priority: 0 }, fast: { weight: 'much', priority: 4 } } })).toEqual([
    expect.stringContaining('class.fast: weight: expected a whole number'),
  ])
})

test('whatever names a class names one that exists', () => {
  expect(
    problemsOf({
      class: { fast: { weight: 100 } },
      sasl_class_maps: { app: 'quick', web: 'fast', shop: 'slow', store: 'slow' },
      sender_class_maps: 'static:bulk',
      class_header: 'X Class',
      smtpd: [{ address: '127.0.0.1:2587', class: 'bulk' }],
    }),
  ).toEqual([
    expect.stringContaining('default_class: there is no table [class.normal]'),
    expect.stringContaining('sasl_class_maps: there are no tables [class.quick], [class.slow]; add them, or name other classes'),
    expect.stringContaining('sender_class_maps: there is no table [class.bulk]'),
    expect.stringContaining('class_header: "X Class" is not the name of a header field'),
    expect.stringContaining('[[smtpd]] class: there is no table [class.bulk]'),
  ])
  expect(problemsOf({ client_class_maps: 'texthash:/etc/deferd/classes' })).toEqual([
    expect.stringContaining('client_class_maps: there are no classes; add [class.NAME] tables'),
  ])
})

test('times of a class are compared with those that it has from the relay and from tables', () => {
  expect(problemsOf({ class: { ...NORMAL, slow: { weight: 1, minimal_backoff_time: '2h' } } })).toEqual([
    expect.stringContaining('class.slow: minimal_backoff_time is above maximal_backoff_time; set both in the table'),
  ])
  expect(
    problemsOf({
      class: { ...NORMAL, slow: { weight: 1, minimal_backoff_time: '30m' } },
      destination: { 'far.example': { maximal_backoff_time: '20m' } },
    }),
  ).toEqual([expect.stringContaining('class.slow: minimal_backoff_time is above maximal_backoff_time')])
})

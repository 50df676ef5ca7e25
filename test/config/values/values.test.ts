import { describe, expect, test } from 'vitest'
import * as values from '../../../src/config/values/values.ts'

const cases: readonly (readonly [
  string,
  values.Kind<unknown>,
  readonly (readonly [given: unknown, value: unknown])[],
  readonly unknown[],
])[] = [
  [
    'duration',
    values.duration,
    [
      ['300s', 300_000],
      [300, 300_000],
      ['1h30m', 5_400_000],
      ['90', 90_000],
      [0, 0],
    ],
    ['soon', '-5m', '', true, null],
  ],
  [
    'durationInDays',
    values.durationInDays,
    [
      ['2', 172_800_000],
      ['2h', 7_200_000],
    ],
    ['d'],
  ],
  [
    'size',
    values.size,
    [
      ['10', 10],
      ['1k', 1024],
      ['2 MB', 2_097_152],
      ['1G', 1_073_741_824],
    ],
    ['-1', '1t', '1.5k', true],
  ],
  [
    'flag',
    values.flag,
    [
      ['yes', true],
      ['On', true],
      [true, true],
      [1, true],
      ['no', false],
      ['off', false],
      [0, false],
    ],
    ['maybe', '', 2],
  ],
  [
    'text',
    values.text,
    [
      ['a', 'a'],
      [5, '5'],
      ['', ''],
    ],
    [['a'], null],
  ],
  [
    'fraction',
    values.fraction,
    [
      ['0.5', 0.5],
      [2, 2],
      ['1e3', 1000],
    ],
    ['-0.1', '', 'x', 'Infinity'],
  ],
  [
    'count from 1 to 5',
    values.count(1, 5),
    [
      ['1', 1],
      [5, 5],
    ],
    [0, 6, '1.5', 'x', true],
  ],
  ['oneOf', values.oneOf('may', 'none'), [['May', 'may']], ['maybe', '']],
  [
    'list',
    values.list,
    [
      ['a, b  c', ['a', 'b', 'c']],
      [['a b'], ['a b']],
      ['', []],
    ],
    [5, ['a', 5]],
  ],
  [
    'lines',
    values.lines,
    [
      ['a b , c', ['a b', 'c']],
      [['x'], ['x']],
    ],
    [5],
  ],
  [
    'words',
    values.words('bounce', 'delay'),
    [
      ['Bounce, DELAY', ['bounce', 'delay']],
      [[], []],
    ],
    ['bounce, other', 5],
  ],
  [
    'durationsInHours',
    values.durationsInHours,
    [
      ['4, 24', [14_400_000, 86_400_000]],
      [
        ['30m', 2],
        [1_800_000, 7_200_000],
      ],
      [1, [3_600_000]],
    ],
    ['soon', [true]],
  ],
  [
    'feedback',
    values.feedback,
    [
      ['1', { rate: 1, perConcurrency: false }],
      ['1/5', { rate: 0.2, perConcurrency: false }],
      ['1 / concurrency', { rate: 1, perConcurrency: true }],
    ],
    ['2', '-1', '1/x', '1/0', ''],
  ],
]

describe.each(cases)('%s', (_, kind, accepted, refused) => {
  test.each(accepted)('%j is %j', (given, value) => expect(kind(given)).toEqual({ value }))
  test.each(refused.map((given) => [given]))('%j is refused', (given) => {
    expect(kind(given)).toEqual({ wrong: expect.stringMatching(/^expected .*, got /) as string })
  })
})

test.each([
  ['4', 'h', '4h'],
  ['4m', 'h', '4m'],
  ['1, 2d', 'h', '1h, 2d'],
  ['1.5', 'd', '1.5d'],
] as const)('%s in %s is %s', (text, unit, expected) => expect(values.withUnit(text, unit)).toBe(expected))

import { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { givenConditions, withFilters } from '../../../src/cli/queue-client/filters.ts'
import { WallView } from '../../../src/system/wall-view.ts'
import { ANY_MESSAGE, filterOf as filterBy, isFiltered } from '../../../src/store/message-conditions.ts'

const NOW = 1_000_000_000

function filterOf(...args: readonly string[]) {
  const command = withFilters(new Command('list').exitOverride().configureOutput({ writeErr: () => undefined }))
  command.parse(args, { from: 'user' })
  return filterBy(givenConditions(command.opts()), { now: NOW, wall: new WallView(() => NOW, 60_000) })
}

describe('filter options', () => {
  test('none select all mail', () => {
    expect(filterOf()).toEqual(ANY_MESSAGE)
    expect(isFiltered(filterOf())).toBe(false)
  })

  test.each([
    [['--sender', 'Ann@FAR.example'], { sender: 'Ann@far.example' }],
    [['--sender', '<>'], { sender: '' }],
    [['--sender', 'MAILER-DAEMON'], { sender: '' }],
    [['--recipient', '*@FAR.example'], { recipient: '*@FAR.example' }],
    [['--destination', 'FAR.example'], { destination: 'far.example' }],
    [['--queue', 'hold'], { queue: 'hold' }],
    [['--older-than', '1h'], { olderThan: NOW - 3_600_000 }],
    [['--younger-than', '1h'], { youngerThan: NOW - 3_600_000 }],
    [['--arrived-after', '1970-01-12T13:46:40Z'], { arrivedAfter: NOW + 60_000 }],
    [['--arrived-before', '1000000'], { arrivedBefore: NOW + 60_000 }],
    [['--expires-within', '1h'], { expiresWithin: NOW + 3_600_000 }],
    [['--status', '4.7.*'], { status: '4.7.*' }],
    [['--attempts-over', '0'], { attemptsOver: 0 }],
    [['--reply', 'Busy'], { reply: 'Busy' }],
  ] as const)('%j', (args, condition) => {
    expect(filterOf(...args)).toEqual({ ...ANY_MESSAGE, ...condition })
    expect(isFiltered(filterOf(...args))).toBe(true)
  })

  test.each(['1000000', '999999'])('arrivals from 1000000 to %s are a mistake', (end) => {
    expect(() => filterOf('--arrived-after', '1000000', '--arrived-before', end)).toThrow(/--arrived-before is not after --arrived-after/)
  })

  test('--limit alone is not a condition', () => {
    expect(isFiltered(filterOf('--limit', '5'))).toBe(false)
  })

  test.each([
    ['--queue', 'nowhere'],
    ['--older-than', 'soon'],
    ['--younger-than', 'late'],
    ['--arrived-after', '2h'],
    ['--expires-within', '2026-11-24T08:00:00Z'],
    ['--attempts-over', '-1'],
    ['--limit', 'all'],
    ['--reply', 'x'.repeat(1_001)],
    ['--status', '4.7'],
    ['--status', '4.7.0x*'],
    ['--sendr', 'x'],
  ])('%s %s is refused', (...args) => expect(() => filterOf(...args)).toThrow())
})

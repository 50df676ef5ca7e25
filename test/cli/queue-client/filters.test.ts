import { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { givenConditions, withFilters } from '../../../src/cli/queue-client/filters.ts'
import { ANY_MESSAGE, filterOf as filterBy, isFiltered } from '../../../src/store/message-conditions.ts'

const NOW = 1_000_000_000

function filterOf(...args: readonly string[]) {
  const command = withFilters(new Command('list').exitOverride().configureOutput({ writeErr: () => undefined }))
  command.parse(args, { from: 'user' })
  return filterBy(givenConditions(command.opts()), NOW)
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
    [['--older-than', '1h'], { arrivedBefore: NOW - 3_600_000 }],
    [['--younger-than', '1h'], { arrivedAfter: NOW - 3_600_000 }],
    [['--status', '4.7.*'], { status: '4.7.*' }],
    [['--attempts-over', '0'], { attemptsOver: 0 }],
    [['--reply', 'Busy'], { reply: 'Busy' }],
  ] as const)('%j', (args, condition) => {
    expect(filterOf(...args)).toEqual({ ...ANY_MESSAGE, ...condition })
    expect(isFiltered(filterOf(...args))).toBe(true)
  })

  test('--limit alone is not a condition', () => {
    expect(isFiltered(filterOf('--limit', '5'))).toBe(false)
  })

  test.each([
    ['--queue', 'nowhere'],
    ['--older-than', 'soon'],
    ['--younger-than', 'late'],
    ['--attempts-over', '-1'],
    ['--limit', 'all'],
    ['--reply', 'x'.repeat(1_001)],
    ['--status', '4.7'],
    ['--status', '4.7.0x*'],
    ['--sendr', 'x'],
  ])('%s %s is refused', (...args) => expect(() => filterOf(...args)).toThrow())
})

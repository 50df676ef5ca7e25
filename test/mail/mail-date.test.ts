import { describe, expect, test } from 'vitest'
import { civilTime, formatMailDate, formatStamp, isoInstant, parseMailDate } from '../../src/mail/mail-date.ts'

const AT = Date.UTC(2026, 10, 20, 8, 5, 0)

describe('formats', () => {
  test.each([
    [{ offset: 60, name: 'CET' }, 'Fri, 20 Nov 2026 09:05:00 +0100 (CET)'],
    [{ offset: -570, name: 'MART' }, 'Thu, 19 Nov 2026 22:35:00 -0930 (MART)'],
    [{ offset: 0, name: 'UTC' }, 'Fri, 20 Nov 2026 08:05:00 +0000 (UTC)'],
  ])('a date of mail in %j', (zone, text) => {
    expect(formatMailDate(AT, zone)).toBe(text)
    expect(parseMailDate(text)).toBe(AT)
  })

  test('ISO 8601 and the stamp of a Message-Id are in UTC', () => {
    expect([isoInstant(AT + 250), formatStamp(AT)]).toEqual(['2026-11-20T08:05:00.250Z', '20261120080500'])
  })

  test.each([
    [Date.UTC(1970, 0, 1), 1970, 1, 1, 'Thu'],
    [Date.UTC(1969, 11, 31), 1969, 12, 31, 'Wed'],
    [Date.UTC(2000, 1, 29), 2000, 2, 29, 'Tue'],
    [Date.UTC(2100, 2, 1), 2100, 3, 1, 'Mon'],
  ])('the civil date of %i', (at, year, month, day, weekday) => {
    expect(civilTime(at)).toMatchObject({ year, month, day, weekday })
  })
})

describe('parses', () => {
  test.each([
    ['20 Nov 2026 08:05', 0],
    ['Fri, 20 NOV 2026 08:05:00', 0],
    ['Fri, 20 Nov 2026 03:05:00 EST', 0],
    ['Fri, 20 Nov 2026 08:05:00 GMT', 0],
    [' 20 Nov 2026 09:05:30 +0100 ', 30_000],
  ])('%j', (text, later) => expect(parseMailDate(text)).toBe(AT + later))

  test.each(['', 'soon', '2026-11-20', '20 Foo 2026 08:05:00'])('%j is not a date', (text) => expect(parseMailDate(text)).toBeUndefined())
})

import { expect, test } from 'vitest'
import { csvRows } from '../../src/resources/csv.ts'
import { suppressionJson, suppressionShape } from '../../src/resources/records/suppression-json.ts'
import { importedLines, suppressedAddress, suppressionScope } from '../../src/suppression/import-lines.ts'
import type { WallView } from '../../src/system/wall-view.ts'
import { VirtualClock } from '../../src/testkit/virtual/virtual-clock.ts'
import type { Suppression } from '../../src/store/records/suppression-entry.ts'

const clock = new VirtualClock()
const wall: WallView = clock.wall
const terms = { scope: '*', now: clock.now(), wall }

test('lines are addresses, or CSV with a heading', () => {
  expect(importedLines('bob@FAR.example\r\n\n@gone.example\n', terms)).toEqual({
    entries: [
      { scope: '*', address: 'bob@far.example', reason: 'import', text: null, until: null },
      { scope: '*', address: '@gone.example', reason: 'import', text: null, until: null },
    ],
    mistakes: [],
  })
  const csv = 'reason,address,text,scope,expire_time\ncomplaint,Ann@far.example,"said ""stop"", twice",US.example,2999-01-01T00:00:00Z\n'
  expect(importedLines(csv, terms).entries).toMatchObject([
    { scope: 'us.example', address: 'Ann@far.example', reason: 'complaint', text: 'said "stop", twice' },
  ])
})

test('each mistake has its line, and nothing of the others is used', () => {
  const lines = Array.from({ length: 100_000 }, (_, n) => (n % 10_000 === 9_999 ? `broken ${n}` : `user${n}@far.example`))
  const { entries, mistakes } = importedLines(lines.join('\n'), terms)
  expect(entries).toEqual([])
  expect(mistakes.map(({ line }) => line)).toEqual(Array.from({ length: 10 }, (_, n) => (n + 1) * 10_000))
  expect(mistakes[0]?.text).toBe('"broken 9999" is neither an address nor @domain')
  expect(importedLines(lines.filter((_, n) => n % 10_000 !== 9_999).join('\n'), terms).entries).toHaveLength(99_990)
})

test.each([
  ['a@far.example\nb@far.example\na@FAR.example', [3, 'repeats line 1: a@far.example for *']],
  ['address,when\na@far.example,now', [1, 'unknown column "when"; write some of scope, address, reason, text, expire_time']],
  ['address,reason\na@far.example', [2, '1 fields instead of 2: address, reason']],
  ['address,reason\na@far.example,spam', [2, 'reason: "spam" is none of bounce, complaint, manual, import, unsubscribe']],
  ['address,text\na@far.example,"open', [2, 'a quotation mark without its end, or within a field without quotes']],
  ['address,scope\na@far.example,x y', [2, 'scope: "x y" is neither * nor a sender domain']],
  ['address,expire_time\na@far.example,soon', [2, 'expire_time: "soon" is no time such as 2027-01-31T08:00:00Z']],
  ['address,expire_time\na@far.example,1999-01-01T00:00:00Z', [2, 'expire_time: 1999-01-01T00:00:00Z is over: remove the line']],
])('%j is refused', (text, [line, why]) => {
  expect(importedLines(text, terms)).toEqual({ entries: [], mistakes: [{ line, text: why }] })
})

test('an export is imported as it was', async () => {
  const entry: Suppression = {
    scope: 'us.example',
    address: '+bob@far.example',
    reason: 'bounce',
    reply: '550 5.1.1 <bob>: "no", such user',
    destination: 'far.example',
    since: clock.now(),
    until: clock.now() + 86_400_000,
    hits: 2,
    firstHitAt: clock.now(),
    lastHitAt: clock.now(),
    addedBy: 'deferd',
    listings: 1,
    strikes: [],
    seq: 1,
  }
  async function* lines() {
    yield `${JSON.stringify(suppressionJson(entry, { now: clock.now(), wall }))}\n`
  }
  let csv = ''
  for await (const chunk of csvRows({ shape: suppressionShape, rowsOf: null }, lines())) csv += chunk
  const { scope, address, reason, reply: text, until } = entry
  expect(importedLines(csv, terms)).toEqual({ entries: [{ scope, address, reason, text, until }], mistakes: [] })
})

test('addresses need a domain', () => {
  expect(suppressedAddress('bob')).toBeUndefined()
  expect(suppressedAddress('a@b@far.example')).toBeUndefined()
  expect(suppressedAddress('"bob"@far.example')).toBe('bob@far.example')
})

test('domains have the form that RCPT compares', () => {
  expect(['Bob@BÜCHER.example', '@BÜCHER.example'].map(suppressedAddress)).toEqual(['Bob@xn--bcher-kva.example', '@xn--bcher-kva.example'])
  expect(['*', 'BÜCHER.example'].map(suppressionScope)).toEqual(['*', 'xn--bcher-kva.example'])
  expect(['@', '@a,b.example', '@a.example,@b.example:bob@c.example', '@bob@c.example'].map(suppressedAddress)).toEqual([
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  expect(['', '@a.example', '*.example', 'a b.example'].map(suppressionScope)).toEqual([undefined, undefined, undefined, undefined])
})

import { WallView } from '../../src/system/wall-view.ts'
import { expect, test } from 'vitest'
import { attentionJson } from '../../src/resources/status-json.ts'

test('conditions have one form, with times of the wall clock', () => {
  const items = attentionJson(
    [
      { kind: 'store-unavailable', why: 'disk full', since: 12_000 },
      { kind: 'oauth-failed', count: 1, why: 'm365: invalid_client', since: 13_000 },
      { kind: 'corrupt-messages', messages: 2 },
      { kind: 'expiring-recipients', count: 100, isAtLeast: true, within: 3_600_000 },
      { kind: 'notices-due', messages: 1, isAtLeast: false },
      { kind: 'warnings', count: 4, last: 'no TLS', since: 11_000 },
    ],
    new WallView(() => 0, 10_000),
  )
  const empty = { count: null, at_least: false, within: null, text: null, since: null }
  expect(items).toEqual([
    { ...empty, kind: 'store-unavailable', text: 'disk full', since: 2 },
    { ...empty, kind: 'oauth-failed', count: 1, text: 'm365: invalid_client', since: 3 },
    { ...empty, kind: 'corrupt-messages', count: 2 },
    { ...empty, kind: 'expiring-recipients', count: 100, at_least: true, within: 3600 },
    { ...empty, kind: 'notices-due', count: 1 },
    { ...empty, kind: 'warnings', count: 4, text: 'no TLS', since: 1 },
  ])
})

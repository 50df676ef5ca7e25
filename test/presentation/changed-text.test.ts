/** Units of the numbers in the audit log. */
import { expect, test } from 'vitest'
import { changedText } from '../../src/presentation/changed-text.ts'

test.each([
  ['hold', '--all', 3, '3 messages'],
  ['delete', '4d1CsX0Yz1zB', 0, '0 messages'],
  ['resend', '--sender=app@shop.example', 1, '1 message'],
  ['erase', '--recipient=ann@far.example', 1_200, '1,200 messages'],
  ['suspend', 'far.example', 1, '1 destination'],
  ['suspend', 'provider.example', 1, '1 destination'],
  ['resume', 'provider google', 1, '1 provider'],
  ['suspend', 'provider google: suspend for 1h: 421 busy', 1, '1 provider'],
  ['rate', 'provider google: rate 6/min for 2h: 450 busy', 1, '1 provider'],
  ['suppression-add', 'bob@full.example', 1, '1 entry'],
  ['suppression-import', '', 12, '12 entries'],
  ['suppression-resume', 'news.example', 1, '1 sender domain'],
  ['access-remove', 'client 192.0.2.1', 1, '1 entry'],
  ['quota-reset', 'ann', 2, '2 quotas'],
  ['token add', 'grafana', 1, '1 token'],
  ['webhook replay', 'app --since=2h', 1, '1 webhook'],
  ['tls-forget', 'far.example', 1, '1 policy'],
  ['drain', 'n1', 1, '1 node'],
  ['check domain', 'far.example', 0, 'nothing'],
  ['schedule', 'nightly', 4, '4 changes'],
])('%s %s has changed %i: %s', (action, words, changed, text) => {
  expect(changedText({ action, arguments: words, changed })).toBe(text)
})

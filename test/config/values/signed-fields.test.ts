/** dkim_oversign_headers and dkim_sign_headers: the names of the tag h=. */
import { describe, expect, test } from 'vitest'
import { parseSignedFields } from '../../../src/config/values/signed-fields.ts'
import { HeaderChoice } from '../../../src/dkim/header-choice.ts'
import type { RawField } from '../../../src/mail/headers.ts'
import { configFrom } from '../../../src/config/load.ts'

const fieldsOf = (...names: readonly string[]): readonly RawField[] =>
  names.map((name) => ({ name: name.toLowerCase(), value: ' x', raw: `${name}: x\r\n` }) as unknown as RawField)

const chosen = (config: Readonly<Record<string, unknown>>, ...names: readonly string[]): string =>
  new HeaderChoice(parseSignedFields(configFrom(config, 'relay.example').config)).names(fieldsOf(...names)).join(' ')

describe('the names that are signed', () => {
  test('by default', () => {
    expect(chosen({}, 'From', 'To', 'List-Id', 'X-Other', 'References', 'Sender', 'Received')).toBe(
      'From From Reply-To To To Cc Subject Date Message-ID References References Sender List-Id',
    )
  })

  test('as configured', () => {
    const config = { dkim_oversign_headers: 'From Subject Date?', dkim_sign_headers: 'To, X-Campaign-*' }
    expect(chosen(config, 'From', 'To', 'To', 'X-Campaign-Id', 'X-Campaign-', 'List-Id')).toBe('From From Subject To To X-Campaign-Id')
    expect(chosen(config, 'From', 'Date')).toBe('From From Subject Date Date')
  })
})

test.each<[Readonly<Record<string, unknown>>, RegExp]>([
  [{ dkim_oversign_headers: 'To', dkim_sign_headers: 'Subject' }, /From must be signed$/],
  [{ dkim_sign_headers: 'received' }, /received must not be signed/],
  [{ dkim_sign_headers: 'Subject' }, /Subject is listed twice$/],
  [{ dkim_oversign_headers: 'From, Subject:' }, /"Subject:" is not the name of a header field$/],
  [{ dkim_sign_headers: 'Sender?' }, /"Sender\?" is not the name/],
  [{ dkim_oversign_headers: 'From, X-*' }, /X-\* has a \*/],
  [{ dkim_sign_headers: 'LI*ST' }, /"LI\*ST" is not the name/],
  [{ dkim_sign_headers: 'Re*' }, /dkim_sign_headers: Re\* stands for received too, which changes on the way$/],
  [{ dkim_sign_headers: 'Authentication-*' }, /stands for authentication-results too/],
  [{ dkim_sign_headers: 'DKIM-*' }, /stands for dkim-signature too/],
  [
    { dkim_oversign_headers: 'From, To', dkim_sign_headers: 'Sender, Bcc' },
    /^(?!.*dkim_oversign)(?!.*\n.*changes).*Bcc must not be signed/s,
  ],
  [
    { dkim_oversign_headers: 'Bcc, From', dkim_sign_headers: 'Sender' },
    /^(?!.*\n.*changes).*dkim_oversign_headers: Bcc must not be signed/s,
  ],
])('%j is refused', (config, problem) => {
  expect(() => configFrom(config, 'relay.example')).toThrow(problem)
})

/** The mail exchangers of a destination tell its provider before a connection is made. */
import { expect, test } from 'vitest'
import { configFrom } from '../../../src/config/load.ts'
import { SmtpAgentHarness } from '../../support/smtp-agent-harness.ts'

const { provider } = configFrom({ provider: { big: { mx: ['.big.example'] } } }, 'relay.example').config

function harness(answer: (provider: string | null) => boolean, config: readonly string[] = []) {
  const far = new SmtpAgentHarness({ config, tables: { provider } })
  const found: (string | null)[] = []
  const admits = (one: string | null): boolean => {
    found.push(one)
    return answer(one)
  }
  const attempt = (to: string) =>
    far.attempt(far.request({ to: [to] }), { keepConnection: true, signal: new AbortController().signal, admits })
  return { far, found, attempt }
}

test('a delivery that belongs to another provider makes no connection, and has not begun', async () => {
  const { far, found, attempt } = harness(() => false)
  far.mx('customer.example', [10, 'mx1.big.example']).host('mx1.big.example', '192.0.2.1')
  expect(await attempt('ann@customer.example')).toBe('not-begun')
  expect(found).toEqual(['big'])
  expect(far.dialled).toEqual([])
})

test('a delivery that is admitted goes on, and the next one on its connection', async () => {
  const { far, found, attempt } = harness(() => true)
  far.mx('customer.example', [10, 'mx1.big.example'])
  far.host('mx1.big.example', '192.0.2.1')
  for (let n = 0; n < 2; n++) expect(await attempt('ann@customer.example')).toMatchObject({ relay: 'mx1.big.example[192.0.2.1]:25' })
  expect(found).toEqual(['big'])
  expect(far.dialled).toEqual(['192.0.2.1'])
})

test('other mail exchangers show no provider, nor do a failed look-up and a relayhost in brackets', async () => {
  const { far, found, attempt } = harness(() => true)
  far.mx('own.example', [10, 'mx.own.example'])
  far.host('mx.own.example', '192.0.2.2')
  await attempt('ann@own.example')
  await attempt('ann@unknown.example')
  expect(found).toEqual([null])
  const relayed = harness(() => false, ['relayhost=[mx1.big.example]'])
  relayed.far.host('mx1.big.example', '192.0.2.1')
  expect(await relayed.attempt('ann@own.example')).toMatchObject({ relay: 'mx1.big.example[192.0.2.1]:25' })
  expect(relayed.found).toEqual([])
})

/** A recorded script fails as the relay did: a strict client gets equal results from a sink that replays it. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { makeCertificate } from '../../../src/testkit/remote/certificate-maker.ts'
import { record, replay } from '../../support/recorded-network.ts'

const page = (name: string): string => readFileSync(new URL(`../../../docs/${name}`, import.meta.url), 'utf8')

const identity = makeCertificate({ seed: 'recorder', names: ['localhost'] })

const ADDRESSES = [...page('sink.md').matchAll(/^\| `(\S+@\S+)` \| .* \| .* \|$/gm)].map(([, address = '']) => address)

describe('each address of docs/sink.md that requests a fault', () => {
  test('is in the table', () => {
    expect(ADDRESSES.length).toBeGreaterThan(25)
  })

  test.each(ADDRESSES)('%s', async (address) => {
    const mail = { to: [address] }
    const { outcomes, text } = await record('', 'any.example', [mail], { addresses: true, keepsAddresses: true })
    expect(await replay(text, mail), text).toEqual(outcomes)
  })
})

/** Faults that happen before a client reaches the proxy, and one whose reply has an address, which is masked. */
const UNSEEN = /^(?:dns-|mx-failover$|rcpt-moved$)/

const section =
  page('faults.md')
    .split(/^## /m)
    .find((text) => text.startsWith('One client')) ?? ''
const FAULTS = section.split('\n').flatMap((line) => {
  const [, name = '', , example = ''] = line.split(/(?<!\\)\|/).map((cell) => cell.trim())
  if (!/^[a-z0-9-]+$/.test(name) || !example.includes('`') || UNSEEN.test(name)) return []
  const code = [...example.matchAll(/`([^`]+)`/g)].map(([, one = ''], index) =>
    one.startsWith('{') ? `rule.${name}-${index} = ${one}` : one,
  )
  return [[name, code.join('\n')] as const]
})

describe.each([
  ['with TLS', identity],
  ['without TLS', null],
] as const)('each fault of docs/faults.md, %s', (_name, own) => {
  test.each(FAULTS)('%s', async (_fault, script) => {
    const { outcomes, text } = await record(script, 'them.example', [{ to: ['bob@them.example'] }], { identity: own })
    expect(await replay(text, { from: 's1@d1.example', to: ['r1@d2.example'] }), text).toEqual(outcomes)
  })
})

test('two recipients with different results have rules of their own', async () => {
  const script = `
    rule.a = { at = "rcpt", recipient = "bob@*", reply = "550 5.1.1 no such user" }
    rule.b = { at = "rcpt", recipient = "ann@*", reply = "452 4.2.2 full", until = "7m" }`
  const mail = { to: ['bob@them.example', 'ann@them.example', 'eve@them.example'] }
  const { outcomes, text } = await record(script, 'them.example', [mail])
  expect(await replay(text, { from: 's1@d1.example', to: ['r1@d2.example', 'r2@d2.example', 'r3@d2.example'] })).toEqual(
    outcomes.map((round) => round.map((words) => words.replaceAll('bob@them', 'r1@d2').replaceAll('ann@them', 'r2@d2'))),
  )
  expect(text).toContain('until = "10m"')
})

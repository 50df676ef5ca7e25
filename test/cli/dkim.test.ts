/** `deferd dkim` from a new key to its record in DNS, and signatures of single messages. */
import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { loadDkimKey } from '../../src/dkim/keys.ts'
import { BOTH_KEYS, KEY_FILES } from '../support/dkim/dkim-keys.ts'
import { DnsServer } from '../support/dns-server.ts'
import { Operator } from '../support/operator.ts'

let operator: Operator
let dns: DnsServer
beforeEach(async () => {
  operator = new Operator()
  dns = await DnsServer.start()
  mkdirSync(join(operator.directory, 'etc'))
})
afterEach(async () => {
  operator.leave()
  await dns[Symbol.asyncDispose]()
})

const MESSAGE = 'From: App <app@example.com>\nTo: ann@far.example\nSubject: voil\u00e0\n\nhi  there\n.\n'

/** Writes a configuration whose table has these keys. */
function configure(keys: readonly string[] = BOTH_KEYS): void {
  const table = `[dkim."example.com"]\nkeys = ${JSON.stringify(keys)}\n`
  writeFileSync(operator.defaultFiles.system, `dns_servers = ["${dns.address}"]\n${table}`)
}

/** Publishes the keys of the table. */
function publish(): void {
  for (const [selector, path] of [
    ['e1', KEY_FILES.ed25519],
    ['r1', KEY_FILES.rsa],
  ] as const) {
    dns.zone.set(`${selector}._domainkey.example.com`, [loadDkimKey({ selector, path, staged: false }).record])
  }
}

describe('generate', () => {
  const generate = async (...options: readonly string[]): Promise<readonly Record<string, string>[]> => {
    const out = await operator.says(
      'dkim',
      'generate',
      'example.com',
      '--directory',
      join(operator.directory, 'keys'),
      '--json',
      ...options,
    )
    return out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, string>)
  }

  test('writes keys that only their owner may read, and overwrites none', async () => {
    const keys = await generate()
    expect(keys.map(({ selector, type }) => `${selector} ${type}`)).toEqual(['r2026a rsa', 'e2026a ed25519'])
    for (const { path = '' } of keys) expect(statSync(path).mode & 0o777).toBe(0o600)
    expect((await generate()).map(({ selector }) => selector)).toEqual(['r2026b', 'e2026b'])
    const again = await operator.run([
      'dkim',
      'generate',
      'example.com',
      '--selector',
      'r2026a',
      '--type',
      'rsa',
      '--directory',
      join(operator.directory, 'keys'),
    ])
    expect(again).toMatchObject({
      code: 73,
      err: expect.stringMatching(/cannot write .*\.pem: it exists: move the file away, or name another --selector\n/),
    })
    const inFile = await operator.run(['dkim', 'generate', 'example.com', '--directory', keys[0]?.path ?? ''])
    expect(inFile).toMatchObject({ code: 73, err: expect.stringMatching(/\.pem is not a folder: move the file away\n/) })
  })

  test('prints records that check finds, until a letter of one is changed', async () => {
    const keys = await generate('--selector', 's1')
    configure(keys.map(({ selector, path }) => `${selector}:${path}`))
    for (const { name = '', record = '' } of keys) dns.zone.set(name, [record])
    expect(await operator.run(['dkim', 'check'])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^ok .*published\nok .*published\n$/),
    })
    const { name = '', record = '' } = keys[1] ?? {}
    dns.zone.set(name, [record.replace(/p=(.)/, (_, letter) => `p=${letter === 'A' ? 'B' : 'A'}`)])
    expect(await operator.run(['dkim', 'check', 'example.com'])).toMatchObject({
      code: 65,
      out: expect.stringContaining('the published key differs from the private key'),
    })
  })

  test('prints paths, records in strings of at most 255 octets, and a table', async () => {
    const out = await operator.says(
      'dkim',
      'generate',
      'B\u00fccher.example',
      '--type',
      'rsa',
      '--directory',
      join(operator.directory, 'keys'),
    )
    const path = join(operator.directory, 'keys/xn--bcher-kva.example.r2026a.pem')
    expect(out.split('\n')[0]).toBe(path)
    expect(out).toMatch(/^r2026a\._domainkey\.xn--bcher-kva\.example\. IN TXT \( "v=DKIM1; k=rsa; p=[^"]{237}" "[^"]+" \)$/m)
    expect(out).toContain(`[dkim."xn--bcher-kva.example"]\nkeys = ["r2026a:${path}"]\n`)
    expect(readFileSync(path, 'utf8')).toMatch(/^-----BEGIN PRIVATE KEY-----/)
  })

  test.each([['no domain!'], ['example.com', '--bits', '512'], ['example.com', '--selector', 'a b'], ['example.com', '--type', 'dsa']])(
    'refuses %s %s',
    async (...argv) => {
      expect((await operator.run(['dkim', 'generate', ...argv])).code).toBe(64)
    },
  )
})

describe('check', () => {
  const record = (): string => loadDkimKey({ selector: 'e1', path: KEY_FILES.ed25519, staged: false }).record
  const NAME = 'e1._domainkey.example.com'

  test.each([
    ['no TXT record', () => []],
    ['2 TXT records', () => [record(), record()]],
    ['the key is revoked', () => ['v=DKIM1; k=ed25519; p=']],
    ['the published key differs', () => [loadDkimKey({ selector: 'r1', path: KEY_FILES.rsa, staged: false }).record]],
    ['marked as a test', () => [`${record()}; t=y`]],
    ['not for mail', () => [`${record()}; s=tlsrpt`]],
    ['damaged', () => ['v=DKIM1; k=ed25519; p=AAAA']],
    ['not a DKIM1 record', () => ['v=spf1 -all']],
  ])('finds %s', async (text, records) => {
    configure(BOTH_KEYS.slice(0, 1))
    dns.zone.set(NAME, records())
    expect(await operator.run(['dkim', 'check'])).toMatchObject({ code: 65, out: expect.stringContaining(text) })
  })

  test('ends with 75 when a look-up fails for now', async () => {
    configure(BOTH_KEYS.slice(0, 1))
    dns.zone.set(NAME, 'fails')
    expect(await operator.run(['dkim', 'check', '--json'])).toMatchObject({ code: 75, out: expect.stringContaining('"verdict":"unknown"') })
  })

  test('tells when a key that does not sign yet is published', async () => {
    configure(BOTH_KEYS.map((key) => key.replace(':', '?:')))
    publish()
    expect(await operator.says('dkim', 'check')).toMatch(/published; remove the "\?"/)
    expect(await operator.says('dkim', 'show')).toMatch(/ed25519-sha256, 256 bits, does not sign yet/)
  })
})

describe('sign and verify', () => {
  test('a signed message verifies; with a changed word, it does not', async () => {
    configure()
    publish()
    const { out } = await operator.run(['dkim', 'sign'], { stdin: MESSAGE })
    expect(await operator.run(['dkim', 'verify'], { stdin: out })).toMatchObject({
      code: 0,
      out: 'pass     d=example.com s=r1 a=rsa-sha256\npass     d=example.com s=e1 a=ed25519-sha256\n',
    })
    const changed = await operator.run(['dkim', 'verify', '--json'], { stdin: out.replace('there', 'where') })
    expect(changed).toMatchObject({ code: 65, out: expect.stringContaining('"why":"the body was changed"') })
  })

  test('a message that gets no signature is refused', async () => {
    configure()
    expect(await operator.run(['dkim', 'sign'], { stdin: MESSAGE.replace('example.com', 'other.example') })).toMatchObject({
      code: 65,
      err: expect.stringContaining('no [dkim] table'),
    })
    expect(await operator.run(['dkim', 'verify'], { stdin: MESSAGE })).toMatchObject({
      code: 65,
      err: expect.stringContaining('no DKIM-Signature'),
    })
  })

  test('verify ends with 75 when the look-up of a key fails for now', async () => {
    configure()
    const { out } = await operator.run(['dkim', 'sign'], { stdin: MESSAGE })
    dns.zone.set('r1._domainkey.example.com', 'fails')
    dns.zone.set('e1._domainkey.example.com', 'fails')
    expect((await operator.run(['dkim', 'verify'], { stdin: out })).code).toBe(75)
  })
})

test('show prints the keys, and config the table', async () => {
  configure()
  const keys = (await operator.says('dkim', 'show', '--json')).trimEnd().split('\n')
  expect(keys.map((line) => JSON.parse(line) as object)).toMatchObject([
    { domain: 'example.com', selector: 'r1', algorithm: 'rsa-sha256', bits: 2048, signs: true, name: 'r1._domainkey.example.com' },
    { selector: 'e1', algorithm: 'ed25519-sha256', bits: 256 },
  ])
  expect(await operator.says('config')).toContain(`[dkim."example.com"]\nkeys = ${BOTH_KEYS.join(', ')}\n`)
  expect((await operator.run(['dkim', 'show', 'other.example'])).code).toBe(78)
})

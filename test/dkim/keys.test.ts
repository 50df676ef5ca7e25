/** Keys that cannot be used stop a start with 78, name file and line, and leave a running relay with its previous keys. */
import { generateKeyPairSync } from 'node:crypto'
import { chmodSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { ConfigError, loadConfig, type LoadedConfig } from '../../src/config/load.ts'
import { prepareFiles } from '../../src/daemon/preparation.ts'
import { createWorld } from '../../src/testkit/index.ts'
import { BOTH_KEYS, KEY_FILES, writePrivate } from '../support/dkim/dkim-keys.ts'

const folder = mkdtempSync(join(tmpdir(), 'deferd-keys-'))
let files = 0
const pem = (key: { export(options: { type: 'pkcs8'; format: 'pem' }): string | Buffer }): string =>
  key.export({ type: 'pkcs8', format: 'pem' }).toString()
const fileWith = (text: string): string => writePrivate(join(folder, `${files++}.pem`), text)

/** The configuration of a file with these lines. */
function load(...lines: readonly string[]): LoadedConfig {
  const file = join(folder, 'deferd.toml')
  writeFileSync(file, `${lines.join('\n')}\n`)
  return loadConfig({ file, env: {}, overrides: [], uid: 0, calledAs: 'deferd', hostname: 'relay.example' })
}

const table = (...keys: readonly string[]): readonly string[] => ['', '[dkim."us.example"]', `keys = ${JSON.stringify(keys)}`]

function problemsOf(...lines: readonly string[]): readonly string[] {
  const prepared = prepareFiles(load(...lines))
  return prepared.kind === 'ready' ? [] : prepared.problems.map(({ where, text }) => `${where.replace(`${folder}/`, '')}: ${text}`)
}

const warningsOf = (...lines: readonly string[]): readonly string[] =>
  prepareFiles(load(...lines))
    .warnings.filter(({ part }) => part === 'DKIM keys')
    .map(({ text }) => text)

describe('a key', () => {
  test.each([
    ['missing', () => join(folder, 'none.pem'), /cannot use .*none\.pem: ENOENT/],
    [
      'readable by others',
      () => {
        const path = fileWith(readFileSync(KEY_FILES.rsa, 'utf8'))
        chmodSync(path, 0o640)
        return path
      },
      /other users may read it \(mode 640\): chmod 600 /,
    ],
    ['truncated', () => fileWith(readFileSync(KEY_FILES.rsa, 'utf8').slice(0, 900)), /has no private key \(PEM, not encrypted\)/],
    [
      'of RSA-768',
      () => fileWith(pem(generateKeyPairSync('rsa', { modulusLength: 768 }).privateKey)),
      /RSA key of 768 bits: receivers require 1024, use 2048/,
    ],
    [
      'of a curve of ECDSA',
      () => fileWith(pem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey)),
      /key of the type ec: use RSA or Ed25519/,
    ],
    [
      'encrypted',
      () =>
        fileWith(
          generateKeyPairSync('ed25519')
            .privateKey.export({ type: 'pkcs8', format: 'pem', cipher: 'aes-128-cbc', passphrase: 'x' })
            .toString(),
        ),
      /has no private key/,
    ],
    [
      'a public key',
      () => fileWith(generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' }).toString()),
      /has no private key/,
    ],
  ])('%s is a problem at its line', (_name, path, text) => {
    const problems = problemsOf(...table(`s1:${path()}`))
    expect(problems).toHaveLength(1)
    expect(problems[0]).toMatch(/^deferd\.toml:3: dkim\."us\.example": /)
    expect(problems[0]).toMatch(text)
  })

  test('is reported with the problems of other tables', () => {
    expect(problemsOf(...table('s1:/none/1', 's2:/none/2'), '[dkim."b.example"]', 'keys = ["s1:/none/3"]')).toHaveLength(3)
  })

  test('of an unusual length gives a warning', () => {
    const short = fileWith(pem(generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey))
    expect(warningsOf('myorigin = "us.example"', ...table(`s1:${short}`))).toEqual([
      `${short} has an RSA key of 1024 bits, some receivers ignore it: use 2048`,
    ])
  })
})

describe('a table', () => {
  test.each([
    ['[dkim."us.example"]', 'keys is missing'],
    ['[dkim."us.example"]\nkeys = []', 'expected a list of texts such as'],
    ['[dkim."us.example"]\nkeys = ["no-path"]', 'expected a list of texts such as'],
    ['[dkim."us.example"]\nkeys = ["a b:/x"]', 'expected a list of texts such as'],
    ['[dkim."us.example"]\nkeys = ["s1:/x", "S1:/y"]', 'two keys have one selector'],
    ['[dkim."us example"]\nkeys = ["s1:/x"]', 'expected a domain in ASCII form'],
    ['[dkim."us.example"]\nkeys = ["s1:/x"]\nkey = "y"', 'unknown key key; a table has keys and expire'],
    ['[dkim."us.example"]\nkeys = ["s1:/x"]\nexpire = "1h"', 'expire: shorter than maximal_queue_lifetime'],
    ['[dkim."us.example"]\nkeys = ["s1:/x"]\nexpire = "soon"', 'expire: expected a time'],
    ['dkim = "yes"', 'dkim must be a table'],
    ['dkim_sign = "maybe"', 'dkim_sign: expected yes or no'],
    ['dns_servers = ["localhost"]', 'dns_servers: "localhost" is not an address'],
  ])('%j is a problem', (text, problem) => {
    expect(() => load(text)).toThrow(problem)
    expect(() => load(text)).toThrow(ConfigError)
  })

  test.each(['127.0.0.1', '127.0.0.1:5353', '::1', '[::1]:53', '[::1]'])('dns_servers may have %s', (server) => {
    expect(load(`dns_servers = ["${server}"]`).config.dns_servers).toEqual([server])
  })
})

describe('warnings', () => {
  test('tell that notices are not signed', () => {
    expect(warningsOf('myorigin = "other.example"', ...table(...BOTH_KEYS))).toEqual([
      'notices are not signed: their From has the domain other.example (myorigin), for which there is no [dkim] table',
    ])
    expect(warningsOf('myorigin = "mail.us.example"', ...table(...BOTH_KEYS))).toEqual([])
  })

  test('tell that a destination folds lines in another way', () => {
    const lines = ['myorigin = "us.example"', ...table(...BOTH_KEYS), '[destination."far.example"]', 'smtp_line_length_limit = 100']
    expect(warningsOf(...lines)).toEqual([expect.stringMatching(/^destination\."far\.example" has an smtp_line_length_limit of its own/)])
    expect(warningsOf(...lines, 'dkim_sign = "no"')).toEqual([])
  })

  test('tell that a table signs nothing', () => {
    expect(warningsOf('myorigin = "us.example"', ...table(...BOTH_KEYS.map((key) => key.replace(':', '?:'))))).toEqual([
      'dkim."us.example" signs nothing, because all its keys are marked with "?"',
    ])
  })

  test('are absent without tables', () => {
    expect(warningsOf('')).toEqual([])
  })
})

test('a world with a key that cannot be used is not created', async () => {
  await expect(createWorld({ config: { dkim: { 'us.example': { keys: ['s1:/none'] } } } })).rejects.toThrow(ConfigError)
})

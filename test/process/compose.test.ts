/** The files for Docker Compose: valid by the schema of the Compose specification, with parameters that exist, for the image as it is. */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { Ajv } from 'ajv'
import { describe, expect, test } from 'vitest'
import { imageConfig } from '../../scripts/package/image/image-config.ts'
import { QUEUE } from '../../scripts/package/image/root-files.ts'
import { loadConfig } from '../../src/config/load.ts'
import { reasonToSkip } from '../support/required.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

interface Service {
  readonly image: string
  readonly read_only: boolean
  readonly cap_drop: readonly string[]
  readonly command?: readonly string[]
  readonly ports?: readonly string[]
  readonly volumes?: readonly string[]
  readonly tmpfs: readonly string[]
  readonly secrets?: readonly string[]
  readonly environment?: Readonly<Record<string, string>>
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>
  readonly volumes?: Readonly<Record<string, unknown>>
  readonly secrets?: Readonly<Record<string, { readonly file: string }>>
}

const TOOLS = join(root, 'clients/openapi')
const reason = reasonToSkip(
  'clients',
  existsSync(join(TOOLS, 'node_modules/yaml')) ? null : 'npm ci --prefix clients/openapi has not installed yaml',
)

/** A file of contrib/compose, read by the YAML of the tools for the API document. */
function compose(name: string): Compose {
  const { parse } = createRequire(join(TOOLS, 'package.json'))('yaml') as { readonly parse: (text: string) => unknown }
  return parse(read(`contrib/compose/${name}`)) as Compose
}

/** The schema of compose-spec/compose-spec at 170098ba; its licence is beside it. It names its own schema by another URL than Ajv does. */
const { $schema: _, ...schema } = JSON.parse(read('test/process/compose-spec/compose-spec.json')) as Readonly<Record<string, unknown>>
const isValid = new Ajv({ strict: false, validateFormats: false }).compile(schema)

describe.skipIf(reason !== null)(`the files for Docker Compose${reason === null ? '' : ` (${reason})`}`, () => {
  test.each(['compose.yaml', 'compose-lab.yaml'])('%s is valid, and its program has no rights', (name) => {
    const file = compose(name)
    expect({ valid: isValid(file), errors: isValid.errors }).toEqual({ valid: true, errors: null })
    for (const service of Object.values(file.services))
      expect(service).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] })
  })

  test('the schema refuses a misspelt member', () => {
    const { relay } = compose('compose.yaml').services
    expect(isValid({ services: { relay: { ...relay, read_onli: true } } })).toBe(false)
  })

  test('the parameters of the relay exist, and the ports, folders and secrets are those of the image and of the file', () => {
    const file = compose('compose.yaml')
    const relay = file.services['relay'] as Service
    const { config } = imageConfig({ architecture: 'x64', layers: [] }, { version: '1.0.0', revision: '', source: '', at: 0 })
    const sources = { overrides: [], uid: 65532, calledAs: 'deferd', defaultFiles: { folder: '/nonexistent', system: '/nonexistent' } }
    const loaded = loadConfig({
      ...sources,
      env: { ...relay.environment, ...Object.fromEntries(config.Env.map((line) => line.split('='))) },
    })
    expect(loaded.given.size).toBe(Object.keys(relay.environment ?? {}).length)
    const ports = (relay.ports ?? []).map((port) => port.split(':')[1])
    expect(ports.map((port) => `${port}/tcp`)).toEqual(Object.keys(config.ExposedPorts))
    expect(relay.volumes).toEqual([`mail:/${QUEUE}`])
    expect(Object.keys(file.volumes ?? {})).toEqual(['mail'])
    expect(relay.secrets?.map((secret) => `/run/secrets/${secret}`)).toEqual([relay.environment?.['DEFERD_SMTP_SASL_PASSWORD_MAPS']])
    expect(Object.keys(file.secrets ?? {})).toEqual(relay.secrets)
  })
})

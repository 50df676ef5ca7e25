/** The workflows of the forge: their steps are commands that run here, of scripts that exist, with no more rights than they need. */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { reasonToSkip } from '../support/required.ts'

const ROOT = join(import.meta.dirname, '../..')
const TOOLS = join(ROOT, 'clients/openapi')
const reason = reasonToSkip(
  'clients',
  existsSync(join(TOOLS, 'node_modules/yaml')) ? null : 'npm ci --prefix clients/openapi has not installed yaml',
)

/** A step is a command: no action of another repository runs. */
const step = z.strictObject({ name: z.string().min(1), run: z.string().min(1), env: z.record(z.string(), z.string()).optional() })

const workflow = z.strictObject({
  name: z.string().regex(/^[a-z]+$/),
  on: z.strictObject({
    push: z.strictObject({ branches: z.array(z.string()).optional(), tags: z.array(z.string()).optional() }).optional(),
    pull_request: z.null().optional(),
    schedule: z.array(z.strictObject({ cron: z.string().regex(/^(?:[\d*]+ ){4}[\d*]+$/) })).optional(),
    workflow_dispatch: z.null().optional(),
  }),
  permissions: z.strictObject({ contents: z.literal('read'), 'id-token': z.literal('write').optional() }),
  jobs: z.record(
    z.string(),
    z.strictObject({
      'runs-on': z.literal('ubuntu-24.04'),
      container: z.strictObject({ image: z.literal('node:24-bookworm'), options: z.literal('--privileged') }),
      'timeout-minutes': z.int().max(360),
      steps: z.array(step).min(2),
    }),
  ),
})

const files = globSync('.github/workflows/*.yml', { cwd: ROOT })
const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly scripts: Readonly<Record<string, string>> }

function read(file: string): z.infer<typeof workflow> {
  const { parse } = createRequire(join(TOOLS, 'package.json'))('yaml') as { readonly parse: (text: string) => unknown }
  return workflow.parse(parse(readFileSync(join(ROOT, file), 'utf8')))
}

const commands = (file: string): readonly string[] => Object.values(read(file).jobs).flatMap(({ steps }) => steps.map(({ run }) => run))

describe.skipIf(reason !== null)(`the workflows${reason === null ? '' : ` (${reason})`}`, () => {
  test('there is one for the check, the upgrade, the packages, the site, and the publication', () => {
    expect(files.map((file) => read(file).name).toSorted()).toEqual(['check', 'packages', 'publish', 'site', 'upgrade'])
  })

  test.each(files)('%s calls scripts that are there', (file) => {
    const called = commands(file).flatMap((command) => [...command.matchAll(/\bnpm run ([\w:]+)/g)].map(([, name = '']) => name))
    expect(called.filter((name) => scripts[name] === undefined)).toEqual([])
    const paths = commands(file).flatMap((command) =>
      [...command.matchAll(/(?:^|\s)((?:\.ci|test)\/[\w./-]+)/gm)].map(([, path = '']) => path),
    )
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([])
    expect([...called, ...paths]).not.toEqual([])
  })

  test('only the publication asks the forge for an identity', () => {
    expect(files.filter((file) => read(file).permissions['id-token'] !== undefined)).toEqual(['.github/workflows/publish.yml'])
  })
})

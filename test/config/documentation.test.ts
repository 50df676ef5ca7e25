import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { commandsPage } from '../../src/cli/manual.ts'
import { processShell } from '../../src/cli/process-shell.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { configurationPage } from '../../src/config/documentation.ts'
import { OPTIONS } from '../../src/config/options.ts'

const root = join(import.meta.dirname, '../..')
const read = (path: string): string => readFileSync(join(root, path), 'utf8')

/** Without the padding that the formatter gives to tables. */
const unpadded = (page: string): string => page.replaceAll(/ +/g, ' ').replaceAll(/-{3,}/g, '---')

describe('pages made from the source are current (node scripts/docs.ts && oxfmt docs)', () => {
  test('docs/configuration.md', () => {
    expect(unpadded(read('docs/configuration.md'))).toBe(unpadded(configurationPage()))
  })

  test('docs/commands.md', async () => {
    expect(unpadded(read('docs/commands.md'))).toBe(unpadded(commandsPage(await buildProgram(processShell()))))
  })
})

describe('every parameter', () => {
  const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && path !== 'config/options.ts' && path !== 'config/documentation.ts')
    .map((path) => read(join('src', path)))
    .join('\n')

  // Tables that hold for one destination name the parameter without default_.
  const isUsed = (name: string): boolean =>
    [name, name.replace(/^default_/, '')].some((word) => new RegExp(`(?<![\\w$])${word}(?!\\w)`).test(sources))

  test('is documented in one sentence', () => {
    const page = configurationPage()
    for (const [name, { about }] of Object.entries(OPTIONS)) {
      expect(page, name).toContain(`| \`${name}\` |`)
      expect(about, name).toMatch(/^[A-Z0-9[`].*[.:]$|^[a-z]\w+: .*\.$|^[a-z].*\.$/s)
    }
  })

  test('does something', () => {
    expect(Object.keys(OPTIONS).filter((name) => !isUsed(name))).toEqual([])
  })
})

/** The texts with values of the owner: those of the source, and those of a release. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { ownerTexts } from '../../scripts/release/owner-texts.ts'
import { emptyValues, readOwner } from '../../scripts/release/owner.ts'

const ROOT = join(import.meta.dirname, '../..')
const own = readOwner(join(ROOT, 'release/owner.json'))
const example = readOwner(join(ROOT, 'release/owner.example.json'))

test('the texts of the source are those of release/owner.json', () => {
  for (const [file, written] of ownerTexts(own)) expect(readFileSync(join(ROOT, file), 'utf8'), file).toBe(written)
})

test('the source invents no value', () => {
  expect(emptyValues(own)).toEqual(Object.keys(own))
})

test('each value of the example is in a text', () => {
  expect(emptyValues(example)).toEqual([])
  const texts = [...ownerTexts(example).values()].join('\n')
  for (const value of Object.values(example).flat()) expect(texts).toContain(String(value))
  expect(texts).not.toContain('Not set')
  expect(ownerTexts(example).get('.github/CODEOWNERS')).toMatch(/^# .*\n\* ann@example\.org bob@example\.org\n$/)
  expect(ownerTexts(own).get('.github/CODEOWNERS')).toMatch(/^# .*\n# Not set before the first release\.\n$/)
  expect(JSON.parse(ownerTexts(example).get('package.json') ?? '')).toMatchObject({
    repository: { type: 'git', url: 'git+https://forge.example.org/deferd/deferd.git' },
    bugs: { url: 'https://forge.example.org/deferd/deferd/issues' },
  })
})

test('SECURITY.md names the version of package.json', () => {
  const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { readonly version: string }
  expect(readFileSync(join(ROOT, 'SECURITY.md'), 'utf8')).toContain(`${version.split('.').slice(0, 2).join('.')}.x gets fixes of security`)
})

test.each([
  ['an unknown member', { ...example, telephone: '1' }, /Unrecognized key: "telephone"/],
  ['a member of another type', { ...example, answer_days: '3' }, /answer_days/],
  ['text that is no URL', { ...example, homepage: 'deferd' }, /homepage/],
])('%s is refused with the name of the file and of the member', (_, values, why) => {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-owner-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const file = join(folder, 'owner.json')
  writeFileSync(file, JSON.stringify(values))
  expect(() => readOwner(file)).toThrow(file)
  expect(() => readOwner(file)).toThrow(why)
})

/** The notices of third parties: complete, with each text once, equal in the source, and refused for a licence that asks for more. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { refuseLicences } from '../../scripts/package/licences.ts'
import { noticesOf, noticesText } from '../../scripts/package/notices.ts'
import { productionDependencies, type Lock } from '../../scripts/package/production.ts'
import { Operator } from '../support/operator.ts'

const ROOT = join(import.meta.dirname, '../..')
const file = readFileSync(join(ROOT, 'THIRD-PARTY-NOTICES'), 'utf8')
const dependencies = productionDependencies(JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as Lock)

/** Lines of the entry of a package. */
const entry = (text: string, name: string): readonly string[] =>
  (
    text
      .split('\n\n')
      .find((block) => block.startsWith(`${name} `))
      ?.split('\n') ?? []
  ).map((line) => line.trim())

test('the file of the source is that of the lock file', () => {
  expect(noticesOf(ROOT, null), 'run node scripts/package/notices.ts').toBe(file)
})

test('each dependency has its version, its licence, and a holder of the copyright or the text alone', () => {
  expect(dependencies.length).toBeGreaterThan(20)
  for (const { name, version, license } of dependencies) {
    const [first, second, ...holders] = entry(file, name)
    expect([first, second]).toEqual([`${name} ${version}`, expect.stringMatching(new RegExp(`^${license}, text \\d+ below$`))])
    // The text of this licence names its holders nowhere.
    if (license !== 'Apache-2.0') expect(holders, name).not.toEqual([])
  }
})

test('packages without a file of their licence have the text and the holder of their README', () => {
  expect(entry(file, 'pg-types')).toEqual(['pg-types 2.2.0', 'MIT, text 1 below', 'Copyright (c) 2014 Brian M. Carlson'])
  expect(entry(file, 'pgpass')).toEqual(['pgpass 1.0.5', 'MIT, text 1 below', 'Copyright (c) 2013-2016 Hannes Hörl'])
})

test('each text is there once', () => {
  const count = (text: string): number => file.split(text).length - 1
  expect(count('Version 2.0, January 2004')).toBe(1)
  expect(count('THE AUTHOR DISCLAIMS ALL WARRANTIES')).toBe(1)
  // That of deferd, of its dependencies, and of MIT-0.
  expect(count('Permission is hereby granted, free of charge')).toBe(3)
})

test('a package with Node has the licences of Node, and of the other parts of the program', () => {
  const packages = [{ name: 'esbuild', version: '1.0.0', license: 'MIT', text: 'MIT License\n\nCopyright (c) 2020 A\n\nPERMISSION\n' }]
  const text = noticesText({ own: 'OWN', packages, node: { version: '24.0.0', licence: 'TEXT OF NODE' } })
  expect(text).toMatch(
    /^deferd[^]*OWN[^]*\nNode\.js 24\.0\.0\n {2}[^]*\nesbuild 1\.0\.0\n {2}MIT, text 1 below\n {2}Copyright \(c\) 2020 A\n/,
  )
  expect(text).toMatch(/\nText 1\n\nMIT License\n\nPERMISSION\n[^]*\nNode\.js 24\.0\.0\n\nTEXT OF NODE\n$/)
})

test('a dependency under the GPL is refused, and one without a licence', () => {
  expect(() => refuseLicences(dependencies)).not.toThrow()
  expect(() =>
    refuseLicences([
      { name: 'b', license: 'MIT' },
      { name: 'a', license: 'GPL-3.0-only' },
    ]),
  ).toThrow(/^a has the licence GPL-3\.0-only: /)
  expect(() => refuseLicences([{ name: 'a', license: 'unknown' }])).toThrow(/^a has the licence unknown: /)
})

test('deferd --licenses prints it', async () => {
  const operator = new Operator()
  onTestFinished(() => operator.leave())
  expect(await operator.run(['--licenses'])).toMatchObject({ code: 0, out: file, err: '' })
})

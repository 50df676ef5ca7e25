/** The contents of the Debian packages, without a build. */
import { basename, posix } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { CONFFILES, MTA_COMMANDS, type RelaySources } from '../../../scripts/package/layout.ts'
import { mtaPackage, relayPackage } from '../../../scripts/package/packages.ts'
import { POSTFIX_NAMES } from '../../../src/cli/postfix/tools.ts'

const sources: RelaySources = {
  node: 'work/node',
  notices: 'notices\n',
  dist: 'work/dist',
  compiled: ['cli/main.js', 'cli/main.d.ts'],
  dependencies: new Map([['node_modules/zod/index.js', 'node_modules/zod/index.js']]),
  manPages: ['man/deferd.1'],
  pages: ['README.md', 'docs/glossary.md'],
  migrations: ['migrations/0001_queue.sql'],
  read: (path) => (path === 'bin/deferd.js' ? '#!/usr/bin/env node\nlaunch()\n' : `text of ${path}\n`),
  copyright: 'licences\n',
  changelog: 'changes\n',
  boms: new Map([['sbom.cdx.json', '{}\n']]),
}

const release = { version: '1.2', maintainer: 'A <a@example.com>' }
const relay = relayPackage({ ...release, architecture: 'amd64', libraries: 'libc6 (>= 2.34)' }, sources)
const mta = mtaPackage(release, sources)
const paths = (entries: typeof relay.entries): readonly string[] => entries.map(({ path }) => path)

describe('the package deferd', () => {
  test('has Node, program, schema, configuration, unit, man pages and completions', () => {
    expect(paths(relay.entries)).toEqual(
      expect.arrayContaining([
        'usr/bin/deferd',
        'usr/lib/deferd/bin/deferd.js',
        'usr/lib/deferd/bin/node',
        'usr/lib/deferd/dist/cli/main.js',
        'usr/lib/deferd/migrations/0001_queue.sql',
        'usr/lib/deferd/node_modules/zod/index.js',
        'usr/lib/deferd/THIRD-PARTY-NOTICES',
        'usr/lib/deferd/package.json',
        'etc/deferd/deferd.toml',
        'lib/systemd/system/deferd.service',
        'usr/share/bash-completion/completions/deferd',
        'usr/share/doc/deferd/copyright',
        'usr/share/man/man1/deferd.1.gz',
      ]),
    )
  })

  test('has no declarations, and no path twice', () => {
    expect(paths(relay.entries).filter((path) => path.endsWith('.d.ts'))).toEqual([])
    expect(new Set(paths(relay.entries)).size).toBe(relay.entries.length)
  })

  test('starts with its own Node', () => {
    const launcher = relay.entries.find(({ path }) => path === 'usr/lib/deferd/bin/deferd.js')
    expect(launcher).toMatchObject({ text: '#!/usr/lib/deferd/bin/node\nlaunch()\n', mode: 0o755 })
  })

  test('declares every file of /etc as a conffile', () => {
    expect(paths(relay.entries).filter((path) => path.startsWith('etc/'))).toEqual(CONFFILES)
  })

  test('has no file of Postfix, beside which it is installed', () => {
    expect(paths(relay.entries).filter((path) => MTA_COMMANDS.includes(path))).toEqual([])
    expect(relay.control.relations).not.toHaveProperty('Conflicts')
  })

  test('compresses pages in the same way each time', () => {
    const page = relay.entries.find(({ path }) => path === 'usr/share/man/man1/deferd.1.gz')
    expect(page?.kind === 'text' && gunzipSync(page.text).toString()).toBe('text of man/deferd.1\n')
    expect(relay.entries).toEqual(relayPackage({ ...release, architecture: 'amd64', libraries: '' }, sources).entries)
  })
})

describe('the package deferd-mta', () => {
  test('has all commands under Postfix’s names, as links to the program', () => {
    expect(MTA_COMMANDS.map((path) => basename(path)).toSorted()).toEqual([...POSTFIX_NAMES.keys()].toSorted())
    const links = mta.entries.filter(({ path }) => MTA_COMMANDS.includes(path))
    const targets = links.map((entry) => (entry.kind === 'link' ? posix.join(posix.dirname(entry.path), entry.target) : entry))
    expect(targets).toEqual(MTA_COMMANDS.map(() => 'usr/lib/deferd/bin/deferd.js'))
  })

  test('takes the place of another mail transport agent', () => {
    expect(mta.control.relations).toEqual({
      Depends: 'deferd (>= 1.2)',
      Provides: 'mail-transport-agent',
      Conflicts: 'mail-transport-agent',
      Replaces: 'mail-transport-agent',
    })
  })
})

/**
 * The artefacts of a release: two builds are equal, and what is in them runs. Programs for arm64 run under the emulation of qemu-user, with the libraries
 * of the image for arm64.
 */
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { debianVersion } from '../../scripts/package/options.ts'
import { memoryOptions } from '../../src/system/node-version.js'
import { VERSION } from '../../src/system/version.ts'
import { filesWithMode, readLayout, unpackImage, type ReadImage } from './image-layout.ts'
import { installCommands, NewcomerShell, Receiver } from './install-page.ts'
import { InstalledDeferd, labWorks, relayWorks } from './installed-deferd.ts'
import { command, must, root, skipReason } from './tools.ts'
import { twoBuilds, type TwoBuilds } from './two-builds.ts'

const EMULATOR = 'qemu-aarch64-static'
const TOOLS = ['apt-get', 'dpkg-deb', 'readelf', 'x86_64-linux-gnu-strip', 'aarch64-linux-gnu-strip', 'setpriv', EMULATOR]

const reason = skipReason(...TOOLS)

const MINUTES = 60_000

describe.skipIf(reason !== null)(
  `the artefacts${reason === null ? '' : ` (${reason})`}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'deferd-artefacts-'))
    const layout = join(folder, 'layout')
    const rootOf = (architecture: string): string => join(folder, `root-${architecture}`)
    const programs: InstalledDeferd[] = []
    let built: TwoBuilds
    let images: readonly ReadImage[] = []
    let lab: readonly ReadImage[] = []

    const file = (name: string): string => join(built.files, name)
    const debFile = (architecture: string): string => file(`deferd_${debianVersion(VERSION)}_${architecture}.deb`)
    const installed = (...program: readonly string[]): InstalledDeferd => {
      const deferd = new InstalledDeferd(...program)
      programs.push(deferd)
      return deferd
    }
    /** A program for arm64 by its own Node: the launcher would start Node again, which the emulator does not do. */
    const emulated = (...program: readonly string[]): InstalledDeferd => installed(EMULATOR, '-L', rootOf('arm64'), ...program)
    const withNode = (home: string): InstalledDeferd =>
      emulated(join(home, 'bin/node'), ...memoryOptions(process.versions.v8), join(home, 'bin/deferd.js'))

    beforeAll(async () => {
      chmodSync(folder, 0o755)
      built = await twoBuilds(folder)
      mkdirSync(layout)
      execFileSync('tar', ['--extract', '--file', file(`deferd-${VERSION}-image.tar`), '--directory', layout])
      ;({ relay: images, lab } = readLayout(layout, VERSION))
      for (const image of images) unpackImage(image, rootOf(image.architecture))
    }, 25 * MINUTES)

    afterAll(async () => {
      for (const program of programs) await program.close()
      rmSync(folder, { recursive: true })
    }, MINUTES)

    test('two builds by two users, in folders, time zones and languages of their own, are equal', () => {
      expect(built.first.length).toBeGreaterThan(8)
      expect(built.second).toEqual(built.first)
    })

    /** Types the commands of the page in a folder that has one file of the release. */
    async function relaysByThePage(heading: string, name: string, env: NodeJS.ProcessEnv): Promise<void> {
      const [home, receiver] = [mkdtempSync(join(folder, 'home-')), new Receiver()]
      copyFileSync(file(name), join(home, name))
      // The port of the page may be in use here.
      const shell = new NewcomerShell(home, { ...env, DEFERD_SMTPD_LISTEN: '127.0.0.1:0' })
      try {
        for (const typed of installCommands(heading, await receiver.host())) await shell.type(typed)
        await receiver.hasMail()
      } finally {
        await shell.close()
        await receiver.close()
      }
    }

    describe('for npm', () => {
      const home = join(folder, 'npm')

      beforeAll(async () => {
        mkdirSync(home)
        writeFileSync(join(home, 'package.json'), '{}')
        const options = ['--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund']
        await must('npm', ['install', '--prefix', home, ...options, file(`deferd-${VERSION}.tgz`)], process.env)
      }, 10 * MINUTES)

      test('the package has less than 1.5 MB, and the files of `npm pack`', async () => {
        expect(statSync(file(`deferd-${VERSION}.tgz`)).size).toBeLessThan(1.5e6)
        const isMade = (path: string): boolean => path.startsWith('dist/') || path.startsWith('sbom.')
        const listed = (await must('tar', ['--list', '--file', file(`deferd-${VERSION}.tgz`)])).trim().split('\n')
        const packed = JSON.parse(await must('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], process.env)) as readonly {
          readonly files: readonly { readonly path: string }[]
        }[]
        const expected = Object.values(packed).flatMap(({ files }) => files.map(({ path }) => path))
        const own = (paths: readonly string[]): readonly string[] => paths.filter((path) => !isMade(path)).toSorted()
        expect(own(listed.map((path) => path.replace('package/', '')))).toEqual(own(expected))
      })

      test('the program prints its version, as npx starts it', async () => {
        const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}` }
        expect(await must('npm', ['exec', '--prefix', home, '--offline', '--', 'deferd', '--version'], env)).toBe(`${VERSION}\n`)
      })

      test('a lab, a relay and its commands run, without an install script', async () => {
        const deferd = installed(process.execPath, join(home, 'node_modules/deferd/bin/deferd.js'))
        expect(await deferd.output('--licenses')).toBe(readFileSync(join(root, 'THIRD-PARTY-NOTICES'), 'utf8'))
        await labWorks(deferd)
        await relayWorks(deferd)
      })

      test('a mail is relayed with the commands of docs/install.md', () =>
        relaysByThePage('npm', `deferd-${VERSION}.tgz`, {
          PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`,
          HOME: folder,
          // The authority of a registry behind a proxy.
          NODE_EXTRA_CA_CERTS: process.env['NODE_EXTRA_CA_CERTS'],
        }))
    })

    describe('for Debian', () => {
      const unpacked = (architecture: string): string => {
        const to = join(folder, `deb-${architecture}`)
        if (!existsSync(to)) execFileSync('dpkg-deb', ['--extract', debFile(architecture), to])
        return to
      }
      const field = (architecture: string, name: string): Promise<string> => must('dpkg-deb', ['--field', debFile(architecture), name])

      test('the packages of both architectures differ in Node and the library of SQLite only', async () => {
        const { code, stdout } = await command('diff', ['--recursive', '--brief', '--no-dereference', unpacked('amd64'), unpacked('arm64')])
        const library = 'node_modules/better-sqlite3/prebuilds'
        expect({ code, lines: stdout.trim().replaceAll(folder, '').split('\n').toSorted() }).toEqual({
          code: 1,
          lines: [
            'Files /deb-amd64/usr/lib/deferd/bin/node and /deb-arm64/usr/lib/deferd/bin/node differ',
            `Only in /deb-amd64/usr/lib/deferd/${library}: linux-x64.node`,
            `Only in /deb-arm64/usr/lib/deferd/${library}: linux-arm64.node`,
          ],
        })
        expect(await field('arm64', 'Depends')).toMatch(/^adduser, libc6 \(>= 2\.34\), libgcc-s1 \(>= [\d.]+\), libstdc\+\+6 \(>= 11\)\n$/)
        expect([await field('amd64', 'Architecture'), await field('arm64', 'Architecture')]).toEqual(['amd64\n', 'arm64\n'])
      })

      test('a relay for arm64 and its commands run, and it has the licences of Node', async () => {
        const deferd = withNode(join(unpacked('arm64'), 'usr/lib/deferd'))
        await relayWorks(deferd)
        expect(await deferd.output('--licenses')).toMatch(/\nNode\.js 24[^]*\nbetter-sqlite3 [^]*\nNode\.js 24[^]*OpenSSL/)
      })
    })

    describe('the image', () => {
      test('has both architectures, without a file that gives rights and without a shell', () => {
        expect(images.map(({ architecture }) => architecture)).toEqual(['amd64', 'arm64'])
        for (const { architecture, config } of images) {
          expect(config.config.User).toBe('65532:65532')
          expect(filesWithMode(rootOf(architecture), 0o6000)).toEqual([])
          expect(existsSync(join(rootOf(architecture), 'bin')) || existsSync(join(rootOf(architecture), 'usr/bin/sh'))).toBe(false)
          for (const format of ['cdx', 'spdx'])
            expect(statSync(file(`deferd-${VERSION}-image-${architecture}.${format}.json`)).size).toBeGreaterThan(30_000)
        }
      })

      test('of the lab has the layers of that of the relay, and another command', () => {
        expect(lab.map(({ architecture, layers }) => ({ architecture, layers }))).toEqual(
          images.map(({ architecture, layers }) => ({ architecture, layers })),
        )
        for (const { config } of lab) expect([config.config.Cmd, config.config.User]).toEqual([['lab'], '65532:65532'])
      })

      test('its program for arm64 prints its version, and refuses a queue directory that is no volume', async () => {
        const deferd = withNode(join(rootOf('arm64'), 'usr/lib/deferd'))
        expect(await deferd.output('--version')).toBe(`${VERSION}\n`)
        expect(await deferd.output('--licenses')).toMatch(/\nNode\.js 24[^]*\nbetter-sqlite3 [^]*OpenSSL/)
        const refused = await deferd.run(['start', '-o', 'queue_directory=/proc/none'], { DEFERD_REQUIRE_VOLUME: '2' })
        expect(refused).toMatchObject({ code: 78, err: expect.stringContaining('DEFERD_REQUIRE_VOLUME=2: expected 0 or 1') })
        const queue = ['-o', 'queue_directory=/nowhere/queue', '-o', 'smtpd_listen=127.0.0.1:0']
        expect(await deferd.run(['start', ...queue], { DEFERD_REQUIRE_VOLUME: '1' })).toMatchObject({
          code: 78,
          err: expect.stringContaining('the queue directory /nowhere/queue is not a volume: mail would be lost with the container'),
        })
      })
    })

    test('the executable for this machine relays a mail with the commands of docs/install.md', () =>
      relaysByThePage('One file', 'deferd-linux-x64', { PATH: '/usr/bin:/bin' }))

    describe('the executable for arm64', () => {
      test('prints its version', async () => {
        expect(await emulated(file('deferd-linux-arm64')).output('--version')).toBe(`${VERSION}\n`)
      })

      test('a lab runs, and a relay and its commands', async () => {
        const single = emulated(file('deferd-linux-arm64'))
        await labWorks(single)
        await relayWorks(single)
      })
    })
  },
  10 * MINUTES,
)

/** The executable of one file for this machine. */
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { VERSION } from '../../src/system/version.ts'
import { usePostgres, WITHOUT_POSTGRES } from '../support/postgres-queue.ts'
import { reasonToSkip } from '../support/required.ts'
import { InstalledDeferd, labWorks, relayWorks } from './installed-deferd.ts'
import { buildSingle, whyNoBuild } from './single-file.ts'

const ARCHITECTURE = process.arch === 'arm64' ? 'arm64' : 'x64'
const GNU = { x64: 'x86_64-linux-gnu-strip', arm64: 'aarch64-linux-gnu-strip' }
const reason = reasonToSkip('packages', await whyNoBuild(GNU[ARCHITECTURE]))

const MINUTES = 60_000
/** Folder of the library of SQLite. */
const CACHE = join(homedir(), '.cache/deferd')

describe.skipIf(reason !== null)(
  `the executable of one file${reason === null ? '' : ` (${reason})`}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'deferd-single-build-'))
    const built = { program: '', notices: '' }
    let single: InstalledDeferd

    beforeAll(async () => {
      const [program, notices] = await buildSingle(join(folder, 'first'), ARCHITECTURE)
      Object.assign(built, { program, notices })
      single = new InstalledDeferd(program)
    }, 10 * MINUTES)

    afterAll(async () => {
      await single?.close()
      rmSync(folder, { recursive: true })
    })

    test('prints its version with an empty environment, and reads no options of Node', async () => {
      expect(await single.run(['--version'])).toEqual({ code: 0, out: `${VERSION}\n`, err: '' })
      expect(await single.run(['--version'], { NODE_OPTIONS: '--no-such-option' })).toEqual({ code: 0, out: `${VERSION}\n`, err: '' })
    })

    test('a lab runs without environment and home folder', () => labWorks(single))

    test('a relay and its commands run without environment, with a library of this user in ~/.cache', async () => {
      await relayWorks(single)
      expect(statSync(CACHE).mode & 0o022).toBe(0)
    })

    describe.skipIf(WITHOUT_POSTGRES.skip)(`with PostgreSQL${WITHOUT_POSTGRES.why}`, () => {
      const { server } = usePostgres()

      test('a relay and a command share a queue', async () => {
        const database = `queue_database=${await server().createDatabase('single')}`
        const queue = ['-o', database, '-o', 'queue_database_durability=primary', '-o', `queue_directory=${join(folder, 'node')}`]
        const relay = single.start(['start', ...queue, '-o', 'smtpd_listen=127.0.0.1:0'])
        await relay.prints('queue directory')
        expect(await single.output('queue', 'list', ...queue)).toBe('The queue is empty.\n')
        expect((await single.stop(relay)).code).toBe(0)
      })
    })

    test('is called by the names of Postfix', async () => {
      const mailq = join(folder, 'mailq')
      symlinkSync(built.program, mailq)
      expect(await new InstalledDeferd(mailq).run(['--help'])).toMatchObject({ code: 0, out: expect.stringMatching(/^Usage: mailq …\n/) })
    })

    test('validates schedules, whose library is loaded at first use', async () => {
      const config = join(folder, 'deferd.toml')
      writeFileSync(config, '[schedule.work]\nat = "61 * * * *"\ndo = "flush"\n')
      const { code, err } = await single.run(['config', '--config', config])
      expect([code, err]).toEqual([78, expect.stringContaining('61')])
    })

    test('refuses a library that it has not written, in one sentence', async () => {
      const native = join(folder, 'native')
      mkdirSync(native, { mode: 0o700 })
      const env = { DEFERD_NATIVE_DIR: native }
      const refused = () => single.run(['start', '-o', `queue_directory=${join(folder, 'queue')}`, '-o', 'smtpd_listen=127.0.0.1:0'], env)
      const relay = single.start(['start', '-o', `queue_directory=${join(folder, 'queue')}`, '-o', 'smtpd_listen=127.0.0.1:0'], env)
      await relay.prints('queue directory')
      expect((await single.stop(relay)).code).toBe(0)
      const [name = ''] = readdirSync(native)
      const library = join(native, name)
      const sentence = expect.stringMatching(/^deferd: .*is of another user, or is not the library.*: remove it\n$/)
      const content = readFileSync(library)
      writeFileSync(library, content.subarray(0, -1))
      expect(await refused()).toEqual({ code: 78, out: '', err: sentence })
      writeFileSync(library, content)
      if (process.getuid?.() === 0) {
        chownSync(library, 1, 1)
        expect(await refused()).toEqual({ code: 78, out: '', err: sentence })
        chownSync(library, 0, 0)
      }
      chmodSync(native, 0o777)
      expect(await refused()).toEqual({ code: 78, out: '', err: expect.stringContaining('others may write there') })
    })

    test('where no folder can be made, a lab runs, and a relay asks for DEFERD_NATIVE_DIR', async () => {
      const env = { HOME: '/proc' }
      await labWorks(single, env)
      const { code, err } = await single.run(['start', '-o', `queue_directory=${join(folder, 'other')}`], env)
      expect(code).toBe(78)
      expect(err).toMatch(/^deferd: .*cannot write the library of SQLite to \/proc\/\.cache\/deferd: .*; set DEFERD_NATIVE_DIR[^\n]*\n$/)
    })

    test('has at most 130 MB, and notices of what is in it, which it prints', async () => {
      expect(statSync(built.program).size).toBeLessThan(130e6)
      expect(readFileSync(built.notices, 'utf8')).toMatch(
        /^deferd[^]*\nNode\.js 24[^]*\nbetter-sqlite3 [^]*\nesbuild [^]*\npostject [^]*\nNode\.js 24[^]*OpenSSL/,
      )
      expect(await single.output('--licenses')).toBe(readFileSync(built.notices, 'utf8'))
    })
  },
  5 * MINUTES,
)

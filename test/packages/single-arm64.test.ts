/** The executable of one file for arm64, under the emulation of qemu-user. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { VERSION } from '../../src/system/version.ts'
import { reasonToSkip } from '../support/required.ts'
import { InstalledDeferd, labWorks, relayWorks } from './installed-deferd.ts'
import { buildSingle, whyNoBuild } from './single-file.ts'

const EMULATOR = 'qemu-aarch64-static'
/** The C and C++ libraries of arm64, from Debian's packages for cross compilation. */
const LIBRARIES = '/usr/aarch64-linux-gnu'

const missing = await whyNoBuild('aarch64-linux-gnu-strip', EMULATOR)
const reason = reasonToSkip(
  'emulation',
  missing ?? (existsSync(`${LIBRARIES}/lib/libstdc++.so.6`) ? null : `${LIBRARIES} has no libraries`),
)

const MINUTES = 60_000

describe.skipIf(reason !== null)(
  `the executable of one file for arm64${reason === null ? '' : ` (${reason})`}`,
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'deferd-single-arm64-'))
    let single: InstalledDeferd

    beforeAll(async () => {
      const [program] = await buildSingle(folder, 'arm64')
      single = new InstalledDeferd(EMULATOR, '-L', LIBRARIES, program)
    }, 10 * MINUTES)

    afterAll(async () => {
      await single?.close()
      rmSync(folder, { recursive: true })
    })

    test('prints its version', async () => {
      expect(await single.run(['--version'])).toEqual({ code: 0, out: `${VERSION}\n`, err: '' })
    })

    test('a lab runs', () => labWorks(single))

    test('a relay and its commands run', () => relayWorks(single))
  },
  10 * MINUTES,
)

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isUntouched } from '../../../src/import/configuration/untouched-file.ts'

test('a conffile is untouched while it has the sum that dpkg lists', () => {
  const folder = mkdtempSync(join(tmpdir(), 'deferd-untouched-'))
  const [file, status] = [join(folder, 'deferd.toml'), join(folder, 'status')]
  try {
    writeFileSync(file, 'a\n')
    expect(isUntouched(file, status)).toBe(false)
    writeFileSync(status, `Package: deferd\nConffiles:\n ${file} 60b725f10c9c85c70d97880dfe8191b3\nDescription: x\n`)
    expect(isUntouched(file, status)).toBe(true)
    writeFileSync(file, 'b\n')
    expect(isUntouched(file, status)).toBe(false)
    expect(isUntouched(join(folder, 'absent'), status)).toBe(false)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

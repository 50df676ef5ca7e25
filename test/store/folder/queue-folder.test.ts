import { spawnSync } from 'node:child_process'
import { chmodSync, chownSync, lchownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeFolder } from '../../../src/store/folder/folder.ts'
import { takeOwnership } from '../../../src/store/folder/owner-lock.ts'
import { folderProblem } from '../../../src/store/folder/queue-folder.ts'

const UID = process.getuid?.() ?? -1
const isRoot = UID === 0
const OTHER = 65_534

let home: string
let queue: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'deferd-folder-'))
  queue = join(home, 'queue')
  mkdirSync(queue, { mode: 0o700 })
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

test('a private folder of the daemon’s user, or one that is missing, has no problem', () => {
  writeFileSync(join(queue, 'queue.db'), '')
  expect(folderProblem(queue, UID)).toBeNull()
  expect(folderProblem(join(home, 'missing'), UID)).toBeNull()
})

test('a folder on a file system without new names is refused, and missing parents are created', () => {
  const script = `import { makeFolder } from ${JSON.stringify(new URL('../../../src/store/folder/folder.ts', import.meta.url).href)}; makeFolder(process.argv[1])`
  // In a process of its own, because an endless loop would keep the test from its time limit.
  const make = (path: string) =>
    spawnSync(process.execPath, ['--input-type=module', '-e', script, path], { encoding: 'utf8', timeout: 20_000 })
  expect(make('/proc/deferd/queue')).toMatchObject({ status: 1, stderr: expect.stringMatching(/mkdir '\/proc\/deferd'/) })
  expect(make(join(home, 'new/queue')).status).toBe(0)
  expect(statSync(join(home, 'new/queue')).mode & 0o777).toBe(0o700)
})

test.each([0o770, 0o702, 0o777, 0o1777])('mode %o lets others write', (mode) => {
  chmodSync(queue, mode)
  expect(folderProblem(queue, UID)).toBe(`other users can write to it: chmod go-w ${queue}`)
})

test('a folder of another user is refused', () => {
  expect(folderProblem(queue, UID + 1)).toMatch(`it belongs to the user with id ${UID}, and the daemon runs as ${UID + 1}`)
})

test('a link inside is refused', () => {
  symlinkSync('/etc/passwd', join(queue, 'queue.db-wal'))
  expect(folderProblem(queue, UID)).toMatch(`${join(queue, 'queue.db-wal')} is a symbolic link`)
})

test('a link of the user to the folder is taken, unless others can replace it', () => {
  const link = join(home, 'link')
  symlinkSync(queue, link)
  expect(folderProblem(link, UID)).toBeNull()
  chmodSync(home, 0o777)
  expect(folderProblem(link, UID)).toMatch(`${link} is a link that other users can replace`)
  chmodSync(home, 0o1777)
  expect(folderProblem(link, UID)).toBeNull()
})

test.runIf(isRoot)('a link of another user is refused, also above the folder', () => {
  const link = join(home, 'link')
  symlinkSync(home, link)
  lchownSync(link, OTHER, OTHER)
  expect(folderProblem(join(link, 'queue'), UID)).toMatch(`${link} is a link of the user with id ${OTHER}`)
  chownSync(queue, OTHER, OTHER)
  expect(folderProblem(queue, OTHER)).toBeNull()
})

test('a folder or file that its owner cannot use is named with a remedy', () => {
  chmodSync(queue, 0o500)
  expect(folderProblem(queue, isRoot ? OTHER : UID)).toMatch(isRoot ? 'it belongs to the user' : 'its owner cannot use it: chmod u+rwx')
  chmodSync(queue, 0o700)
  const file = join(queue, 'queue.db-wal')
  mkdirSync(file)
  expect(folderProblem(queue, UID)).toBe(`${file} is not a file: move it away`)
})

test.runIf(isRoot)('the queue of another user is refused with a remedy, for commands that change it and that look at its lock', () => {
  takeOwnership(queue).release()
  for (const folder of [home, queue]) chmodSync(folder, 0o711)
  const script = `
    import { isOwned, takeOwnership } from ${JSON.stringify(new URL('../../../src/store/folder/owner-lock.ts', import.meta.url).href)}
    process.setuid(${OTHER})
    for (const use of [takeOwnership, isOwned]) try { use(process.argv[1]) } catch (error) { console.log(error.exitCode, error.message) }`
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script, queue], { encoding: 'utf8' })
  expect(stderr).toBe('')
  const lines = stdout.trimEnd().split('\n')
  expect(lines).toHaveLength(2)
  for (const line of lines) expect(line).toMatch(/^78 cannot use \S+ as the queue folder: .+; run the command as the owner of the folder$/)
})

test('a file in the place of a folder is named, with a remedy', () => {
  const file = join(home, 'file')
  writeFileSync(file, '')
  expect(() => makeFolder(file)).toThrow(`${file} is not a folder: move the file away`)
  expect(() => takeOwnership(file)).toThrow(/^cannot use \S+ as the queue folder: \S+ is not a folder: move the file away/)
})

test('a file as folder, above the folder, and a link to nothing are no queue folder', () => {
  const file = join(home, 'file')
  writeFileSync(file, '')
  symlinkSync(join(home, 'gone'), join(home, 'link'))
  expect(folderProblem(file, UID)).toMatch('it is not a folder')
  expect(folderProblem(join(file, 'queue'), UID)).toBe(`${file} is not a folder: name another queue_directory`)
  expect(folderProblem(join(home, 'link'), UID)).toMatch('it is a link to a missing folder')
})

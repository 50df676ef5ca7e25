/**
 * Writes all outputs into a folder, a file each: `node test/outputs/write-outputs.ts FOLDER [--pictures]`. `diff -r` compares the folders of
 * two commits. `--pictures` takes pictures of the screens, too, in the Chromium of this machine.
 */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import { collectOutputs } from './outputs.ts'

const {
  positionals: [folder],
  values: { pictures },
} = parseArgs({ allowPositionals: true, options: { pictures: { type: 'boolean', default: false } } })
if (folder === undefined) throw new Error('name the folder for the outputs')

let count = 0
const write = (name: string, content: string | Uint8Array): void => {
  const [kind = '', ...rest] = name.split('/')
  const file = join(folder, kind, `${encodeURIComponent(rest.join('/')) || kind}.${typeof content === 'string' ? 'txt' : 'png'}`)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
  count++
}
for (const [name, text] of await collectOutputs(pictures ? write : undefined)) write(name, text)
console.log(`${count} outputs are in ${folder}`)

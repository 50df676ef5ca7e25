/** Classes of mail that the queue has had, with the number under which their recipients stand. */
import type { Band } from '../../config/values/mail-classes.ts'
import { RecordTable } from './record-table.ts'

export interface ClassBand {
  readonly name: string
  readonly band: Band
}

const TABLE = new RecordTable<ClassBand, 'name'>('class', { name: 'text', band: 'number' }, { key: ['name'], unique: ['band'] })

export const CLASS_BANDS = {
  /** Adds a class unless its name or its number is in use. */
  add: TABLE.add(),
  all: TABLE.all(),
}

/** Representations of a whole list beside its pages: a JSON value per line, and CSV. */
import { z } from 'zod'
import { CSV, NDJSON } from '../../http/command-protocol.ts'
import type { Answer } from '../../http/route-table.ts'
import { csvRows, type CsvForm } from '../../resources/csv.ts'
import { lines, wantsLines, type AnswerDescription, type ApiRequest } from './api-route.ts'

/** `format` of a query: a link of a browser cannot send the field Accept. */
export const listFormat = z
  .enum(['ndjson', 'csv'])
  .optional()
  .describe('all entries instead of a page, as a file: one JSON value per line, or CSV')

type Format = z.output<typeof listFormat>

interface WholeList extends CsvForm {
  /** Name of the file, without its ending. */
  readonly name: string
  readonly entries: () => AsyncIterable<Uint8Array | string>
}

/** The whole list for a request that asks for it; null for one that asks for a page. */
export function wholeList(
  request: ApiRequest<{ readonly format?: Format }, unknown>,
  { name, entries, ...form }: WholeList,
): Answer | null {
  const { format } = request.query
  const headers = { 'content-disposition': `attachment; filename="${name}.${format}"` }
  switch (format) {
    case 'csv':
      return { kind: 'stream', contentType: `${CSV}; charset=utf-8`, chunks: csvRows(form, entries()), headers }
    case 'ndjson':
      return { kind: 'stream', contentType: NDJSON, chunks: entries(), headers }
    case undefined:
      return wantsLines(request) ? lines(entries()) : null
  }
}

/** Documentation of the answers of `wholeList`. */
export const wholeListAnswers = (about: string, shape: z.ZodType): readonly AnswerDescription[] => [
  { about, type: NDJSON, shape },
  { about: `${about}, with \`format=csv\``, type: CSV },
]

/**
 * CRC-32 of zlib. Node has it since 20.15, and refuses to link a module that imports an absent name, before any module runs: with
 * this file alone, an older Node still reaches `system/supported-node`.
 */
import zlib from 'node:zlib'

export const crc32: typeof zlib.crc32 = zlib.crc32

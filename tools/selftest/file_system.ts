/** Determines a directory's file system type, and whether its syncs and locks can be trusted. */

/** Verdict on a file system type. */
export interface FileSystem {
  name: string;
  /** Why no log should be stored there, and what to do instead; null if there is no objection. */
  doubt: string | null;
}

const MEMORY = "it is in memory, so its contents are lost on reboot; choose a directory on a disk";
const NETWORK = "it is a network file system, so fdatasync may not reach the disk, and locks may " +
  "not exclude writers on other machines; choose a directory on a local disk";
const HOST = "it is shared by the host, so fdatasync may not reach the disk; " +
  "choose a directory on a local disk";
const PROGRAM = "it is a FUSE file system, so fdatasync may not reach the disk; " +
  "choose a directory on a local disk";
const UNSAFE = "it has no journal, so a power failure can corrupt it; choose a directory on a " +
  "journaling file system";

/** `f_type` values of statfs(2) on Linux, from its manual page and linux/magic.h. */
const KNOWN: Record<number, [name: string, doubt: string | null]> = {
  0x01021994: ["tmpfs", MEMORY],
  0x858458f6: ["ramfs", MEMORY],
  0x6969: ["NFS", NETWORK],
  0x517b: ["SMB", NETWORK],
  0xff534d42: ["CIFS", NETWORK],
  0xfe534d42: ["SMB2", NETWORK],
  0x5346414f: ["AFS", NETWORK],
  0x00c36400: ["Ceph", NETWORK],
  0x0bd00bd0: ["Lustre", NETWORK],
  0x01161970: ["GFS2", NETWORK],
  0x7461636f: ["OCFS2", NETWORK],
  0x73757245: ["Coda", NETWORK],
  0x01021997: ["9p", HOST],
  0x786f4256: ["vboxsf", HOST],
  0xbacbacbc: ["vmhgfs", HOST],
  0x65735546: ["FUSE", PROGRAM],
  0xf15f: ["eCryptfs", PROGRAM],
  0x4d44: ["FAT", UNSAFE],
  0x2011bab0: ["exFAT", UNSAFE],
  0xef53: ["ext4", null],
  0x58465342: ["XFS", null],
  0x9123683e: ["Btrfs", null],
  0x2fc12fc1: ["ZFS", null],
  0xf2f52010: ["F2FS", null],
  0xca451a4e: ["bcachefs", null],
  0x7366746e: ["NTFS", null],
  0x794c7630: ["overlayfs", null],
};

/**
 * Classifies a file system by the `type` from `statfs`, which some systems sign-extend to a
 * negative number. These values are specific to Linux.
 */
export function judgeFileSystem(type: number, platform: string): FileSystem {
  const [name, doubt] = (platform === "linux" ? KNOWN[type >>> 0] : undefined) ??
    ["an unknown file system", null];
  return { name, doubt };
}

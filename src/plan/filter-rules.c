/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules for arguments: one switch a target, one row a range of values. A value without a row leads to
 * `otherwise`, so a switch whose `otherwise` refuses is an allow-list. Constants are written out for the reason
 * that filter-table.c gives.
 *
 * A call of one process must not slow down others. Switching a static key rewrites kernel code while every CPU
 * of the host waits in an interrupt, and some calls interrupt every CPU by themselves. The lists of socket
 * options, socket ioctls, memory advice and barriers below leave such calls out;
 * test/security/test_interrupts.py makes every allowed call and counts interrupts.
 */
#include "plan/filter-table.h"

#define WHOLE UINT32_MAX

/* CLONE_NEW* (mount, cgroup, uts, ipc, user, pid, net), CLONE_UNTRACED, CLONE_PARENT, CLONE_PTRACE. */
#define CLONE_REFUSED UINT32_C(0x7e82a000)

const struct arg_switch filter_switches[_TO_MAX] = {
	/* socket(domain, type, protocol): local sockets, TCP and UDP, and the routing table. */
	[TO_SOCKET] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_EAFNOSUPPORT, .n_cases = 4,
		.cases = {
			{ 1, 1, TO_ALLOW },		/* AF_UNIX */
			{ 2, 2, TO_SOCKET_TYPE },	/* AF_INET */
			{ 10, 10, TO_SOCKET_TYPE },	/* AF_INET6 */
			{ 16, 16, TO_SOCKET_PROTOCOL }, /* AF_NETLINK */
		},
	},
	/* The same without local sockets, which lead to other programs of the host. */
	[TO_INET_SOCKET] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_EAFNOSUPPORT, .n_cases = 3,
		.cases = {
			{ 2, 2, TO_SOCKET_TYPE },	/* AF_INET */
			{ 10, 10, TO_SOCKET_TYPE },	/* AF_INET6 */
			{ 16, 16, TO_SOCKET_PROTOCOL }, /* AF_NETLINK */
		},
	},
	/*
	 * SOCK_NONBLOCK and SOCK_CLOEXEC are above the type's four bits. For an unknown pair of type and
	 * protocol the kernel loads a module on behalf of any user. Landlock's rules for TCP may not apply to
	 * MPTCP.
	 */
	[TO_SOCKET_TYPE] = {
		.arg = 1, .mask = 0xf, .otherwise = TO_EAFNOSUPPORT, .n_cases = 2,
		.cases = { { 1, 1, TO_STREAM_PROTOCOL }, { 2, 2, TO_DGRAM_PROTOCOL } },
	},
	[TO_STREAM_PROTOCOL] = {
		.arg = 2, .mask = WHOLE, .otherwise = TO_EAFNOSUPPORT, .n_cases = 2,
		.cases = { { 0, 0, TO_ALLOW }, { 6, 6, TO_ALLOW } }, /* IPPROTO_TCP */
	},
	[TO_DGRAM_PROTOCOL] = {
		.arg = 2, .mask = WHOLE, .otherwise = TO_EAFNOSUPPORT, .n_cases = 2,
		.cases = { { 0, 0, TO_ALLOW }, { 17, 17, TO_ALLOW } }, /* IPPROTO_UDP */
	},
	[TO_SOCKET_PROTOCOL] = {
		.arg = 2, .mask = WHOLE, .otherwise = TO_EAFNOSUPPORT, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } }, /* NETLINK_ROUTE */
	},
	[TO_SOCKETPAIR] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_EAFNOSUPPORT, .n_cases = 1,
		.cases = { { 1, 1, TO_ALLOW } }, /* AF_UNIX */
	},
	/*
	 * A pair of streams stays between its holders. A datagram socket of a pair can be sent from to any path, and no namespace
	 * and no Landlock rule bounds that.
	 */
	[TO_PAIR_TYPE] = {
		.arg = 1, .mask = 0xf, .otherwise = TO_EAFNOSUPPORT, .n_cases = 2,
		.cases = { { 1, 1, TO_ALLOW }, { 5, 5, TO_ALLOW } }, /* SOCK_STREAM, SOCK_SEQPACKET */
	},
	[TO_PAIR] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_EAFNOSUPPORT, .n_cases = 1,
		.cases = { { 1, 1, TO_PAIR_TYPE } }, /* AF_UNIX */
	},
	/*
	 * getsockopt and setsockopt(fd, level, option): an allow-list. Left out are options that
	 *  - switch static keys: SO_TIMESTAMP*, SO_TIMESTAMPING*, UDP_ENCAP, UDP_GRO, TCP_MD5SIG, TCP_AO*, TCP_TX_DELAY, IP_MINTTL,
	 *    IPV6_MINHOPCOUNT, IPV6_FLOWLABEL_MGR;
	 *  - leave state in the network namespace, which may be used again: group memberships, flow labels;
	 *  - run or load code: SO_ATTACH_*, TCP_ULP, TCP_CONGESTION, the firewall's options from 64 on;
	 *  - give access to a process: SO_PEERPIDFD;
	 *  - few programs need and that have had kernel bugs: SO_ZEROCOPY, IPV6_ADDRFORM, IP_OPTIONS, TCP_REPAIR, TCP_ZEROCOPY_RECEIVE.
	 */
	[TO_SOCKOPT] = {
		.arg = 1, .mask = WHOLE, .otherwise = TO_ENOPROTOOPT, .n_cases = 4,
		.cases = {
			{ 0, 0, TO_IPV4_OPTION },
			{ 1, 1, TO_SOCKET_OPTION },
			{ 6, 6, TO_TCP_OPTION },
			{ 41, 41, TO_IPV6_OPTION },
		},
	},
	[TO_SOCKET_OPTION] = {
		.arg = 2, .mask = WHOLE, .otherwise = TO_ENOPROTOOPT, .n_cases = 3,
		.cases = {
			/*
			 * SO_DEBUG, REUSEADDR, TYPE, ERROR, DONTROUTE, BROADCAST, SNDBUF, RCVBUF, KEEPALIVE, OOBINLINE, NO_CHECK, PRIORITY,
			 * LINGER, BSDCOMPAT, REUSEPORT, PASSCRED, PEERCRED, RCVLOWAT, SNDLOWAT, RCVTIMEO, SNDTIMEO
			 */
			{ 1, 21, TO_ALLOW },
			{ 30, 30, TO_ALLOW }, /* SO_ACCEPTCONN */
			{ 38, 39, TO_ALLOW }, /* SO_PROTOCOL, SO_DOMAIN */
		},
	},
	[TO_TCP_OPTION] = {
		.arg = 2, .mask = WHOLE, .otherwise = TO_ENOPROTOOPT, .n_cases = 3,
		.cases = {
			/*
			 * TCP_NODELAY, MAXSEG, CORK, KEEPIDLE, KEEPINTVL, KEEPCNT, SYNCNT, LINGER2, DEFER_ACCEPT, WINDOW_CLAMP, INFO,
			 * QUICKACK
			 */
			{ 1, 12, TO_ALLOW },
			{ 18, 18, TO_ALLOW }, /* TCP_USER_TIMEOUT */
			{ 25, 25, TO_ALLOW }, /* TCP_NOTSENT_LOWAT */
		},
	},
	[TO_IPV4_OPTION] = {
		.arg = 2, .mask = WHOLE, .otherwise = TO_ENOPROTOOPT, .n_cases = 5,
		.cases = {
			{ 1, 2, TO_ALLOW },   /* IP_TOS, IP_TTL */
			{ 8, 8, TO_ALLOW },   /* IP_PKTINFO */
			{ 10, 15, TO_ALLOW }, /* IP_MTU_DISCOVER, RECVERR (resolvers), RECVTTL, RECVTOS, MTU, FREEBIND */
			{ 24, 24, TO_ALLOW }, /* IP_BIND_ADDRESS_NO_PORT */
			{ 32, 34, TO_ALLOW }, /* IP_MULTICAST_IF, _TTL, _LOOP */
		},
	},
	[TO_IPV6_OPTION] = {
		.arg = 2, .mask = WHOLE, .otherwise = TO_ENOPROTOOPT, .n_cases = 5,
		.cases = {
			{ 16, 19, TO_ALLOW }, /* IPV6_UNICAST_HOPS, MULTICAST_IF, MULTICAST_HOPS, MULTICAST_LOOP */
			{ 23, 26, TO_ALLOW }, /* IPV6_MTU_DISCOVER, MTU, RECVERR, V6ONLY */
			{ 49, 49, TO_ALLOW }, /* IPV6_RECVPKTINFO */
			{ 51, 51, TO_ALLOW }, /* IPV6_RECVHOPLIMIT */
			{ 66, 67, TO_ALLOW }, /* IPV6_RECVTCLASS, TCLASS */
		},
	},
	/* Without MSG_OOB. The number is the position of the flags among the arguments. */
	[TO_MESSAGE_FLAGS_2] = {
		.arg = 2, .mask = 1, .otherwise = TO_EOPNOTSUPP, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } },
	},
	[TO_MESSAGE_FLAGS_3] = {
		.arg = 3, .mask = 1, .otherwise = TO_EOPNOTSUPP, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } },
	},
	/*
	 * fcntl(fd, command, argument). A lease makes another process's open wait for the holder. A pipe holds
	 * 64 KiB; a larger one counts against its user's limit of pipe pages, which rootless sandboxes share.
	 * Commands from 1039 on are newer than this table.
	 */
	[TO_FCNTL] = {
		.arg = 1, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 3,
		.cases = {
			{ 1024, 1024, TO_EINVAL },    /* F_SETLEASE */
			{ 1031, 1031, TO_PIPE_SIZE }, /* F_SETPIPE_SZ */
			{ 1039, WHOLE, TO_EINVAL },
		},
	},
	/* Of directories that other processes use, too: F_NOTIFY tells what they do there, as inotify would. */
	[TO_APART_FCNTL] = {
		.arg = 1, .mask = WHOLE, .otherwise = TO_FCNTL, .n_cases = 1,
		.cases = { { 1026, 1026, TO_EINVAL } },
	},
	[TO_PIPE_SIZE] = {
		.arg = 2, .mask = WHOLE, .otherwise = TO_EPERM, .n_cases = 1,
		.cases = { { 0, 65536, TO_ALLOW } },
	},
	/* Huge pages come from a host-wide pool outside the memory limit. */
	[TO_MEMFD_CREATE] = {
		.arg = 1, .mask = 0x4, .otherwise = TO_EPERM, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } }, /* no MFD_HUGETLB */
	},
	/* Without MAP_HUGETLB, for the same reason; a kernel that has no such pages answers so, too. */
	[TO_MMAP] = {
		.arg = 3, .mask = 0x40000, .otherwise = TO_EINVAL, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } },
	},
	/*
	 * A process's own limits only: the kernel allows to set those of another process by uid, and init has
	 * the same uid.
	 */
	[TO_PRLIMIT] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_EPERM, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } },
	},
	/* init has the program's user id and must not be slowed down, because it ends the run. */
	[TO_OTHER_PROCESS] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 1,
		.cases = { { 1, 1, TO_EPERM } },
	},
	[TO_PRIORITY_WHO] = {
		.arg = 1, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 1,
		.cases = { { 1, 1, TO_EPERM } },
	},
	[TO_PRIORITY] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 2,
		/* PRIO_PROCESS; PRIO_USER would include init. */
		.cases = { { 0, 0, TO_PRIORITY_WHO }, { 2, 2, TO_EPERM } },
	},
	/* The caller, its group or its user: init has the program's effective user, and its number is not known ahead. */
	[TO_OWN_PRIORITY] = {
		.arg = 1, .mask = WHOLE, .otherwise = TO_EPERM, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } },
	},
	[TO_PERSONALITY] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_EPERM, .n_cases = 2,
		.cases = { { 0, 0, TO_ALLOW }, { WHOLE, WHOLE, TO_ALLOW } }, /* PER_LINUX; ask only */
	},
	[TO_PRCTL] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_EPERM, .n_cases = 9,
		.cases = {
			{ 1, 4, TO_ALLOW },   /* SET/GET_PDEATHSIG, GET/SET_DUMPABLE */
			{ 15, 16, TO_ALLOW }, /* SET/GET_NAME */
			{ 21, 21, TO_ALLOW }, /* GET_SECCOMP */
			{ 23, 23, TO_ALLOW }, /* CAPBSET_READ */
			{ 27, 27, TO_ALLOW }, /* GET_SECUREBITS */
			{ 29, 30, TO_ALLOW }, /* SET/GET_TIMERSLACK */
			/* CHILD_SUBREAPER, NO_NEW_PRIVS (set, get), GET_TID_ADDRESS, THP_DISABLE */
			{ 36, 42, TO_ALLOW },
			{ 65, 66, TO_ALLOW },		      /* SET/GET_MDWE */
			{ 0x53564d41, 0x53564d41, TO_ALLOW }, /* SET_VMA */
		},
	},
	[TO_CLONE] = {
		.arg = 0, .mask = CLONE_REFUSED, .otherwise = TO_EPERM, .n_cases = 1,
		.cases = { { 0, 0, TO_ALLOW } },
	},
	[TO_THREAD] = {
		.arg = 0, .mask = CLONE_REFUSED | 0x10000, .otherwise = TO_EPERM, .n_cases = 1,
		.cases = { { 0x10000, 0x10000, TO_ALLOW } }, /* CLONE_THREAD */
	},
	/*
	 * An allow-list of socket ioctls. Of those left out, SIOCGSTAMP and SIOCGSTAMPNS (in both forms) switch
	 * a static key; those of bridge, dlci and 8021q make the host load a module, on any socket;
	 * SIOCSHWTSTAMP and private ones are for drivers.
	 */
	[TO_SOCKET_IOCTL] = {
		.arg = 1, .mask = WHOLE, .otherwise = TO_EINVAL, .n_cases = 3,
		.cases = {
			{ 0x8901, 0x8905, TO_ALLOW }, /* FIOSETOWN, SIOCSPGRP, FIOGETOWN, SIOCGPGRP, SIOCATMARK */
			{ 0x8910, 0x8933, TO_ALLOW }, /* SIOCGIFNAME … SIOCGIFINDEX: to change anything takes CAP_NET_ADMIN */
			{ 0x8942, 0x8942, TO_ALLOW }, /* SIOCGIFTXQLEN */
		},
	},
	/*
	 * Refuses ioctls that type into or take over a terminal, also the caller's own. Socket ioctls have
	 * their own switch, which keeps the path to the others short.
	 */
	[TO_IOCTL] = {
		.arg = 1, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 5,
		.cases = {
			{ 0x5412, 0x5412, TO_EPERM }, /* TIOCSTI */
			{ 0x541c, 0x541d, TO_EPERM }, /* TIOCLINUX, TIOCCONS */
			{ 0x5423, 0x5423, TO_EPERM }, /* TIOCSETD */
			{ 0x8900, 0x8bff, TO_SOCKET_IOCTL },
			{ 0x80108906, 0x80108907, TO_EINVAL }, /* SIOCGSTAMP_NEW, SIOCGSTAMPNS_NEW */
		},
	},
	/*
	 * Programs on a file system of the host: those of terminals, pipes and descriptors (FIONREAD, FIONBIO, FIOCLEX), and of sockets. Left
	 * out are those of file systems: they reserve space that is never written (FS_IOC_RESVSP), leave keys behind, set project ids,
	 * make subvolumes.
	 */
	[TO_APART_IOCTL] = {
		.arg = 1, .mask = WHOLE, .otherwise = TO_EOPNOTSUPP, .n_cases = 2,
		.cases = { { 0x5400, 0x54ff, TO_IOCTL }, { 0x8900, 0x8bff, TO_IOCTL } },
	},
	/*
	 * MADV_COLLAPSE interrupts every CPU. The speed of MADV_MERGEABLE shows which pages another tenant has.
	 */
	[TO_MADVISE] = {
		.arg = 2, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 2,
		.cases = { { 12, 12, TO_EINVAL }, { 25, 25, TO_EINVAL } },
	},
	/* Private barriers interrupt the caller's own threads; the global ones (1, 2, 4) other processes. */
	[TO_MEMBARRIER] = {
		.arg = 0, .mask = WHOLE, .otherwise = TO_ALLOW, .n_cases = 1,
		.cases = { { 1, 7, TO_EINVAL } },
	},
};

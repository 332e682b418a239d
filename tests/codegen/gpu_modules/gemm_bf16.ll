; C[16, 8] f32 = A[16, K] bf16 * B[K, 8] bf16 by one warp: slices of 16 on their way by cp.async, two ahead, in a ring of three;
; registers filled by ldmatrix
target triple = "nvptx64-nvidia-cuda"
@ring = external addrspace(3) global [0 x i8], align 128       ; 3 x (A: 16 rows of 32 bytes, B: 16 rows of 16 bytes)
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare void @llvm.nvvm.bar.warp.sync(i32)
declare void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3), ptr addrspace(1))
declare void @llvm.nvvm.cp.async.commit.group()
declare void @llvm.nvvm.cp.async.wait.group(i32 immarg)
declare { i32, i32, i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3))
declare { i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.trans.b16.p3(ptr addrspace(3))
declare { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.bf16(i32, i32, i32, i32, i32, i32, float, float, float, float)
define internal ptr addrspace(3) @slice(i32 %i) {
  %s = urem i32 %i, 3
  %at = mul i32 %s, 768
  %p = getelementptr i8, ptr addrspace(3) @ring, i32 %at
  ret ptr addrspace(3) %p
}
define internal void @send(ptr addrspace(1) %A, ptr addrspace(1) %B, i32 %K, i32 %i, i32 %l) {
  %k0 = shl i32 %i, 4
  %in = icmp slt i32 %k0, %K
  br i1 %in, label %a, label %sent
a:
  %s = call ptr addrspace(3) @slice(i32 %i)
  %r = lshr i32 %l, 1
  %h = and i32 %l, 1
  %h8 = shl i32 %h, 3
  %a0 = mul i32 %r, %K
  %a1 = add i32 %a0, %k0
  %a2 = add i32 %a1, %h8
  %pa = getelementptr i16, ptr addrspace(1) %A, i32 %a2
  %to = shl i32 %l, 4
  %sa = getelementptr i8, ptr addrspace(3) %s, i32 %to
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %sa, ptr addrspace(1) %pa)
  %low = icmp ult i32 %l, 16
  br i1 %low, label %b, label %sent
b:
  %kr = add i32 %k0, %l
  %b0 = shl i32 %kr, 3
  %pb = getelementptr i16, ptr addrspace(1) %B, i32 %b0
  %tb = add i32 %to, 512
  %sb = getelementptr i8, ptr addrspace(3) %s, i32 %tb
  call void @llvm.nvvm.cp.async.cg.shared.global.16(ptr addrspace(3) %sb, ptr addrspace(1) %pb)
  br label %sent
sent:
  call void @llvm.nvvm.cp.async.commit.group()
  ret void
}
define ptx_kernel void @gemm(ptr addrspace(1) noalias readonly %A, ptr addrspace(1) noalias readonly %B, ptr addrspace(1) noalias %C, i32 %N, i32 %K) {
entry:
  %l = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  call void @send(ptr addrspace(1) %A, ptr addrspace(1) %B, i32 %K, i32 0, i32 %l)
  call void @send(ptr addrspace(1) %A, ptr addrspace(1) %B, i32 %K, i32 1, i32 %l)
  %r0 = and i32 %l, 15
  %h0 = lshr i32 %l, 4
  %ra = shl i32 %r0, 5
  %ha = shl i32 %h0, 4
  %la = add i32 %ra, %ha
  %rb = shl i32 %r0, 4
  %lb = add i32 %rb, 512
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i1, %loop ]
  %c0 = phi float [ 0.0, %entry ], [ %d0, %loop ]
  %c1 = phi float [ 0.0, %entry ], [ %d1, %loop ]
  %c2 = phi float [ 0.0, %entry ], [ %d2, %loop ]
  %c3 = phi float [ 0.0, %entry ], [ %d3, %loop ]
  call void @llvm.nvvm.cp.async.wait.group(i32 1)
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  %s = call ptr addrspace(3) @slice(i32 %i)
  %pa = getelementptr i8, ptr addrspace(3) %s, i32 %la
  %a = call { i32, i32, i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3(ptr addrspace(3) %pa)
  %a0 = extractvalue { i32, i32, i32, i32 } %a, 0
  %a1 = extractvalue { i32, i32, i32, i32 } %a, 1
  %a2 = extractvalue { i32, i32, i32, i32 } %a, 2
  %a3 = extractvalue { i32, i32, i32, i32 } %a, 3
  %pb = getelementptr i8, ptr addrspace(3) %s, i32 %lb
  %b = call { i32, i32 } @llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.trans.b16.p3(ptr addrspace(3) %pb)
  %b0 = extractvalue { i32, i32 } %b, 0
  %b1 = extractvalue { i32, i32 } %b, 1
  %d = call { float, float, float, float } @llvm.nvvm.mma.m16n8k16.row.col.bf16(i32 %a0, i32 %a1, i32 %a2, i32 %a3, i32 %b0, i32 %b1, float %c0, float %c1, float %c2, float %c3)
  %d0 = extractvalue { float, float, float, float } %d, 0
  %d1 = extractvalue { float, float, float, float } %d, 1
  %d2 = extractvalue { float, float, float, float } %d, 2
  %d3 = extractvalue { float, float, float, float } %d, 3
  %i2 = add i32 %i, 2
  call void @send(ptr addrspace(1) %A, ptr addrspace(1) %B, i32 %K, i32 %i2, i32 %l)
  %i1 = add i32 %i, 1
  %k1 = shl i32 %i1, 4
  %more = icmp slt i32 %k1, %K
  br i1 %more, label %loop, label %out
out:
  %g = lshr i32 %l, 2
  %t = and i32 %l, 3
  %o0 = mul i32 %g, %N
  %t2 = shl i32 %t, 1
  %o1 = add i32 %o0, %t2
  %N8 = shl i32 %N, 3
  %o2 = add i32 %o1, %N8
  %v0 = insertelement <2 x float> poison, float %d0, i32 0
  %v1 = insertelement <2 x float> %v0, float %d1, i32 1
  %q0 = getelementptr float, ptr addrspace(1) %C, i32 %o1
  store <2 x float> %v1, ptr addrspace(1) %q0, align 8
  %v2 = insertelement <2 x float> poison, float %d2, i32 0
  %v3 = insertelement <2 x float> %v2, float %d3, i32 1
  %q1 = getelementptr float, ptr addrspace(1) %C, i32 %o2
  store <2 x float> %v3, ptr addrspace(1) %q1, align 8
  ret void
}
!nvvm.annotations = !{!0}
!0 = !{ptr @gemm, !"kernel", i32 1, !"maxntidx", i32 32}
